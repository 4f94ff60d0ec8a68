package offering

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// maxTypes is the maximum number of instance types of a planned node; one CreateFleet request accepts about this many.
// The types that minValues needs are kept first, then the cheapest.
const maxTypes = 60

// Alternatives returns the offers of the same variant with room for ask and without conflict with the lists of host
// ports. An offer of a capacity reservation has no alternative but itself.
func (st *Stock) Alternatives(offer int, ask resources.Vector, lists []int) bitset.Set {
	if st.Offers[offer].IsReserved() {
		out := bitset.New(len(st.Offers))
		out.Add(offer)
		return out
	}
	v, out := st.VariantOf(offer), bitset.New(len(st.Offers))
	asked := firstOf(ask)
	models := st.Models[v.from:v.to]
	for i := range models {
		model := &models[i]
		if model.most[0] < asked[0] || model.most[1] < asked[1] {
			continue
		}
		if model.hasOneShape {
			if st.hasRoom(st.ShapeOf(model.from), ask, lists) {
				out.AddRange(model.from, model.to)
			}
			continue
		}
		for o := model.from; o < model.to; o++ {
			if st.hasRoom(st.ShapeOf(o), ask, lists) {
				out.Add(o)
			}
		}
	}
	out.AndNot(st.Reserved)
	return out
}

// firstOf returns the first two amounts of the vector. Comparing only these excludes most offers.
func firstOf(v resources.Vector) (first [2]int64) {
	copy(first[:], v)
	return first
}

// quote has the fields of an offer that LeastPrice checks first.
type quote struct {
	price catalog.Price
	first [2]int64 // room in the first two dimensions, usually cpu and memory
	offer int
}

// quotes returns the offerings of a variant outside of capacity reservations, cheapest first.
func (st *Stock) quotes(v *Variant) []quote {
	out := make([]quote, len(v.ByPrice))
	for i, o := range v.ByPrice {
		out[i] = quote{price: st.Offers[o].Price, first: firstOf(st.Room(o)), offer: o}
	}
	return out
}

// LeastPrice returns the price of the cheapest accepted alternative to the offer, or the offer's own price if no such
// alternative is cheaper.
func (st *Stock) LeastPrice(offer int, ask resources.Vector, lists []int, accepted func(offer int) bool) catalog.Price {
	price := st.Offers[offer].Price
	if st.Offers[offer].IsReserved() {
		return price
	}
	asked := firstOf(ask)
	quotes := st.VariantOf(offer).quotes
	for i := range quotes {
		q := &quotes[i]
		if q.price >= price {
			break
		}
		if q.first[0] >= asked[0] && q.first[1] >= asked[1] && st.hasRoom(st.ShapeOf(q.offer), ask, lists) && accepted(q.offer) {
			return q.price
		}
	}
	return price
}

// Choices returns the offers that a NodeClaim planned as offer may list, cheapest first. The number of their types is
// not limited. among are alternatives of offer. Every combination of the instance types, zones and capacity types in
// the result is an offering. If isNearLimit, the node must not become larger than planned in the resources that the
// NodePool limits.
func (st *Stock) Choices(offer int, among bitset.Set, isNearLimit bool) []int {
	if st.Offers[offer].IsReserved() {
		return []int{offer}
	}
	byPrice := st.VariantOf(offer).ByPrice
	sorted := make([]int, 0, len(byPrice))
	limited := st.PoolOf(offer).Remaining.names
	for _, o := range byPrice {
		if among.Has(o) && (!isNearLimit || noLarger(st.TypeOf(o).Capacity, st.TypeOf(offer).Capacity, limited)) {
			sorted = append(sorted, o)
		}
	}
	return st.combinable(sorted)
}

func noLarger(a, b resources.Amounts, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return a.Of(name) > b.Of(name) })
}

// combinable returns offerings whose instance types, zones and capacity types can be combined freely. A NodeClaim lists
// types, zones and capacity types separately, so it also allows each combination of them. Nearly always, combinable
// returns all the given offerings. Otherwise it returns the first of these lists without a hole (see hasHole): the
// offerings with the capacity type of the first offering, those with its zone, those with both.
func (st *Stock) combinable(offers []int) []int {
	if len(offers) == 0 {
		return nil
	}
	if !st.hasHole(offers) {
		return offers
	}
	first := st.Offers[offers[0]]
	for _, keep := range []func(o Offer) bool{
		func(o Offer) bool { return o.CapacityType == first.CapacityType },
		func(o Offer) bool { return o.Zone == first.Zone },
	} {
		kept := slices.DeleteFunc(slices.Clone(offers), func(i int) bool { return !keep(st.Offers[i]) })
		if !st.hasHole(kept) {
			return kept
		}
	}
	return slices.DeleteFunc(slices.Clone(offers), func(i int) bool {
		o := st.Offers[i]
		return o.CapacityType != first.CapacityType || o.Zone != first.Zone
	})
}

// hasHole reports whether an available offering that is not in the list has an instance type, a zone and a capacity
// type that are all in the list.
func (st *Stock) hasHole(offers []int) bool {
	kept, models := bitset.New(len(st.Offers)), bitset.New(len(st.Models))
	var zones, capacityTypes uint64
	for _, i := range offers {
		o := &st.Offers[i]
		kept.Add(i)
		models.Add(o.Model)
		zones, capacityTypes = zones|o.zoneBit, capacityTypes|o.capacityTypeBit
	}
	found := false
	models.Each(func(n int) {
		m := st.Models[n]
		for i := m.from; i < m.to && !found; i++ {
			o := &st.Offers[i]
			found = !kept.Has(i) && o.zoneBit&zones != 0 && o.capacityTypeBit&capacityTypes != 0 && st.available.Has(i)
		}
	})
	return found
}

// FewTypes returns the offers of at most maxTypes types: the types that the pool's minValues need, then the cheapest.
// The offers must be of one pool and sorted by price, and there must be at least one. FewTypes reuses the slice.
func (st *Stock) FewTypes(offers []int) []int {
	p := st.PoolOf(offers[0])
	var models []int // sorted by their cheapest offer
	seen := bitset.New(len(st.Models))
	for _, o := range offers {
		if m := st.Offers[o].Model; !seen.Has(m) {
			seen.Add(m)
			models = append(models, m)
		}
	}
	if len(models) <= maxTypes {
		return offers
	}
	keep := bitset.New(len(st.Models))
	left := maxTypes
	for _, m := range append(st.needed(models, p), models...) {
		if left > 0 && !keep.Has(m) {
			keep.Add(m)
			left--
		}
	}
	return slices.DeleteFunc(offers, func(o int) bool { return !keep.Has(st.Offers[o].Model) })
}

// needed returns the models that the pool's minValues need. Cheapest first, it takes each model that adds a value,
// until all minValues are met or it has maxTypes models.
func (st *Stock) needed(models []int, p *Pool) []int {
	var out []int
	have := bitset.New(len(st.Offers))
	for _, n := range models {
		if p.unmetKey(have) == "" || len(out) == maxTypes {
			break
		}
		with := have.Clone()
		with.AddRange(st.Models[n].from, st.Models[n].to)
		for i := range p.MinValues {
			l := &p.MinValues[i]
			if before := l.values(have, p); before < l.N && l.values(with, p) > before {
				out, have = append(out, n), with
				break
			}
		}
	}
	return out
}
