package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// feasibleOffers returns the offerings that can each host all pods of the node: those of its
// variant that every class accepts and that have the room.
func (pl *planner) feasibleOffers(pn *plannedNode) bitset.Set {
	out := pl.stock.Alternatives(pn.offer, pn.used(pl), pn.podPorts(pl.q))
	if pl.stock.Offers[pn.offer].IsReserved() {
		return out
	}
	for i, a := range pn.allocations {
		if i == 0 || a.acceptSet != pn.allocations[i-1].acceptSet {
			out.And(pl.accepts.Sets[a.acceptSet])
		}
	}
	pl.q.daemonPods.KeepAlike(pn.offer, out)
	return out
}

// launchChoices returns the offerings that the node may be launched as, cheapest first, of any
// number of instance types. Each has room for all pods and keeps the NodePool's limits.
func (pl *planner) launchChoices(pn *plannedNode, tight bool) []int {
	return pl.stock.Choices(pn.offer, pl.feasibleOffers(pn), tight)
}

// tightPools returns, by NodePool, whether its limits could be exceeded if every planned node
// became the largest that it may.
func (pl *planner) tightPools() []bool {
	out := make([]bool, len(pl.stock.Pools))
	for i, p := range pl.stock.Pools {
		left := p.Budget.Clone()
		for _, pn := range pl.planned {
			if left.Unlimited() || pl.stock.VariantOf(pn.offer).Pool != i {
				continue
			}
			var largest resources.Amounts
			pl.feasibleOffers(&pn).Each(func(o int) { largest = largest.Max(pl.stock.TypeOf(o).Capacity) })
			left.Spend(largest, pn.copies)
		}
		out[i] = left.Overrun()
	}
	return out
}

// cheapestPrice returns the price of the cheapest offering that fits the node's pods.
func (pl *planner) cheapestPrice(pn *plannedNode) float64 {
	accepted := func(o int) bool {
		return !slices.ContainsFunc(pn.allocations, func(a allocation) bool { return !pl.accepts.Sets[a.acceptSet].Has(o) })
	}
	return float64(pl.stock.Least(pn.offer, pn.used(pl), pn.podPorts(pl.q), accepted))
}
