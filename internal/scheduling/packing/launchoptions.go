package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// feasibleOffers returns the offerings that can each host all pods of the node: those of its
// variant that every class accepts and that have the room.
func (pl *planner) feasibleOffers(m *plannedNode) bitset.Set {
	out := pl.stock.Alternatives(m.offer, m.used(pl), m.podPorts(pl.q))
	if pl.stock.Offers[m.offer].IsReserved() {
		return out
	}
	for i, a := range m.allocations {
		if i == 0 || a.acceptSet != m.allocations[i-1].acceptSet {
			out.And(pl.accepts.Sets[a.acceptSet])
		}
	}
	pl.q.daemonPods.KeepAlike(m.offer, out)
	return out
}

// launchChoices returns the offerings that the node may be launched as, cheapest first, of any
// number of instance types. Each has room for all pods and keeps the NodePool's limits.
func (pl *planner) launchChoices(m *plannedNode, tight bool) []int {
	return pl.stock.Choices(m.offer, pl.feasibleOffers(m), tight)
}

// tightPools returns, by NodePool, whether its limits could be exceeded if every planned node
// became the largest that it may.
func (pl *planner) tightPools() []bool {
	out := make([]bool, len(pl.stock.Pools))
	for i, p := range pl.stock.Pools {
		left := p.Budget.Clone()
		for _, m := range pl.planned {
			if left.Unlimited() || pl.stock.VariantOf(m.offer).Pool != i {
				continue
			}
			var largest resources.Amounts
			pl.feasibleOffers(&m).Each(func(o int) { largest = largest.Max(pl.stock.TypeOf(o).Capacity) })
			left.Spend(largest, m.copies)
		}
		out[i] = left.Overrun()
	}
	return out
}

// cheapestPrice returns the price of the cheapest offering that fits the node's pods.
func (pl *planner) cheapestPrice(m *plannedNode) float64 {
	accepted := func(o int) bool {
		return !slices.ContainsFunc(m.allocations, func(a allocation) bool { return !pl.accepts.Sets[a.acceptSet].Has(o) })
	}
	return float64(pl.stock.Least(m.offer, m.used(pl), m.podPorts(pl.q), accepted))
}
