package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// survivors returns the offers that could each host all pods of the machine:
// those of its variant that every class accepts and that have the room.
func (w *work) survivors(m *machine) bitset.Set {
	out := w.st.Alternatives(m.offer, m.used(w), m.podPorts(w.q))
	if w.st.Offers[m.offer].IsReserved() {
		return out
	}
	for i, t := range m.takes {
		if i == 0 || t.set != m.takes[i-1].set {
			out.And(w.accepts.Sets[t.set])
		}
	}
	w.q.guests.KeepAlike(m.offer, out)
	return out
}

// candidates returns the offers that the machine may be bought as, cheapest
// first, of any number of types. Whichever is bought, all pods fit, and no limit of the pool is overrun.
func (w *work) candidates(m *machine, tight bool) []int {
	return w.st.Choices(m.offer, w.survivors(m), tight)
}

// tightPools returns, by pool, whether its limits could be overrun if every
// machine became the largest that it may.
func (w *work) tightPools() []bool {
	out := make([]bool, len(w.st.Pools))
	for i, p := range w.st.Pools {
		left := p.Budget.Clone()
		for _, m := range w.machines {
			if left.Unlimited() || w.st.VariantOf(m.offer).Pool != i {
				continue
			}
			var largest resources.Amounts
			w.survivors(&m).Each(func(o int) { largest = largest.Max(w.st.TypeOf(o).Capacity) })
			left.Spend(largest, m.copies)
		}
		out[i] = left.Overrun()
	}
	return out
}

// cheapest returns the price of the cheapest offer that could host the machine's pods.
func (w *work) cheapest(m *machine) float64 {
	accepted := func(o int) bool {
		return !slices.ContainsFunc(m.takes, func(t take) bool { return !w.accepts.Sets[t.set].Has(o) })
	}
	return float64(w.st.Least(m.offer, m.used(w), m.podPorts(w.q), accepted))
}
