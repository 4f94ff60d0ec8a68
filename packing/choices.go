package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/capacity"
)

// maxTypes is how many instance types a machine keeps: one CreateFleet request
// takes about as many. The cheapest are kept, and what minValues asks for.
const maxTypes = 60

// candidates returns the offers that the machine may be bought as, cheapest
// first, of any number of types. Whichever is bought, all pods fit, no limit of the pool is
// overrun, and the types, zones and ways of paying among them can be combined
// freely. A tight machine must not become larger than it was planned, in what the pool limits.
func (w *work) candidates(m *machine, tight bool) []int {
	return w.candidatesOf(w.survivors(m), m, tight)
}

func (w *work) candidatesOf(all bitset, m *machine, tight bool) []int {
	if w.st.offers[m.offer].isReserved() {
		return []int{m.offer}
	}
	byPrice := w.st.variantOf(m.offer).byPrice
	sorted := make([]int, 0, len(byPrice))
	limited := w.st.poolOf(m.offer).budget.names
	for _, o := range byPrice {
		if all.has(o) && (!tight || noLarger(w.st.typeOf(o).Capacity, w.st.typeOf(m.offer).Capacity, limited)) {
			sorted = append(sorted, o)
		}
	}
	return w.combinable(sorted)
}

// tightPools returns, by pool, whether its limits could be overrun if every
// machine became the largest that it may.
func (w *work) tightPools() []bool {
	out := make([]bool, len(w.st.pools))
	for i, p := range w.st.pools {
		left := p.budget.clone()
		left.nodes = 0 // machines count once, whatever they become
		for _, m := range w.machines {
			if len(left.names) == 0 || w.st.variantOf(m.offer).pool != i {
				continue
			}
			var largest capacity.Amounts
			w.survivors(&m).each(func(o int) { largest = largest.Max(w.st.typeOf(o).Capacity) })
			left.spend(largest, m.copies)
		}
		out[i] = slices.ContainsFunc(left.left, func(n int64) bool { return n < 0 })
	}
	return out
}

func noLarger(a, b capacity.Amounts, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return a.Of(name) > b.Of(name) })
}

// combinable returns those of the offers whose types, zones and ways of paying
// can be combined freely: a NodeClaim lists each by itself, so what it may
// become must not include an offer that would not do. Nearly always it is all of them.
func (w *work) combinable(offers []int) []int {
	if len(offers) == 0 {
		return nil
	}
	if !w.hasHole(offers) {
		return offers
	}
	first := w.st.offers[offers[0]]
	for _, keep := range []func(o offer) bool{
		func(o offer) bool { return o.CapacityType == first.CapacityType },
		func(o offer) bool { return o.Zone == first.Zone },
	} {
		kept := slices.DeleteFunc(slices.Clone(offers), func(i int) bool { return !keep(w.st.offers[i]) })
		if !w.hasHole(kept) {
			return kept
		}
	}
	return slices.DeleteFunc(slices.Clone(offers), func(i int) bool {
		o := w.st.offers[i]
		return o.CapacityType != first.CapacityType || o.Zone != first.Zone
	})
}

// hasHole reports whether some combination of the type, zone and way of paying
// of these offers can be bought and is not one of them.
func (w *work) hasHole(offers []int) bool {
	kept, models := newBitset(len(w.st.offers)), newBitset(len(w.st.models))
	var zones, ways uint64
	for _, i := range offers {
		o := &w.st.offers[i]
		kept.set(i)
		models.set(o.model)
		zones, ways = zones|o.zoneBit, ways|o.wayBit
	}
	hole := false
	models.each(func(n int) {
		m := w.st.models[n]
		for i := m.from; i < m.to && !hole; i++ {
			o := &w.st.offers[i]
			hole = !kept.has(i) && o.zoneBit&zones != 0 && o.wayBit&ways != 0 && w.st.available.has(i)
		}
	})
	return hole
}

// fewTypes keeps the offers of at most maxTypes types: the cheapest, but first
// those that the pool's minValues need.
func (w *work) fewTypes(offers []int, p *pool) []int {
	var models []int // in the order of their cheapest offer
	seen := newBitset(len(w.st.models))
	for _, o := range offers {
		if m := w.st.offers[o].model; !seen.has(m) {
			seen.set(m)
			models = append(models, m)
		}
	}
	if len(models) <= maxTypes {
		return offers
	}
	keep := newBitset(len(w.st.models))
	left := maxTypes
	for _, m := range append(w.needed(models, p), models...) {
		if left > 0 && !keep.has(m) {
			keep.set(m)
			left--
		}
	}
	return slices.DeleteFunc(offers, func(o int) bool { return !keep.has(w.st.offers[o].model) })
}

// needed returns the models, cheap ones first, that bring values which the
// pool's minValues still lack.
func (w *work) needed(models []int, p *pool) []int {
	var out []int
	have := newBitset(len(w.st.offers))
	for _, n := range models {
		if p.missing(have) == "" || len(out) == maxTypes {
			break
		}
		with := have.clone()
		with.setRange(w.st.models[n].from, w.st.models[n].to)
		for i := range p.least {
			l := &p.least[i]
			if before := l.values(have, p); before < l.n && l.values(with, p) > before {
				out, have = append(out, n), with
				break
			}
		}
	}
	return out
}
