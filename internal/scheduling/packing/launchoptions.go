package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

// nodeOffers finds the offerings that a planned node may be launched as.
type nodeOffers struct {
	problem     *pending.Problem
	queue       *pending.Queue
	aloneValues map[aloneKey][]int // cache of distinctValuesAlone
}

// feasibleOffers returns the offerings that can each run all pods of the node. They are of the same variant as the
// node's offering, every class on the node accepts them, and they have enough room. The same topology groups match the
// DaemonSet pods of all of them. A node on a reserved instance has only its own offering.
func (offers *nodeOffers) feasibleOffers(pn *plannedNode) bitset.Set {
	out := offers.problem.Stock.Alternatives(pn.offer, offers.used(pn), pn.podPorts(offers.queue))
	if offers.problem.Stock.Offers[pn.offer].IsReserved() {
		return out
	}
	for i, a := range pn.allocations {
		if i == 0 || a.acceptSet != pn.allocations[i-1].acceptSet {
			out.And(offers.problem.Accepts.Sets[a.acceptSet])
		}
	}
	offers.queue.DaemonPods.KeepEqual(pn.offer, out)
	return out
}

// launchChoices returns the offerings that the node may be launched as, cheapest first, of any number of instance
// types. Each offering has room for all pods. tight is true if the NodePool is near its limits: then no choice is
// larger than the planned offering in limited resources.
func (offers *nodeOffers) launchChoices(pn *plannedNode, tight bool) []int {
	return offers.problem.Stock.Choices(pn.offer, offers.feasibleOffers(pn), tight)
}

// tightPools returns, by NodePool, whether its limits would be exceeded if every planned node were launched as the
// largest of its feasible offerings.
func (pb planBuilder) tightPools() []bool {
	out := make([]bool, len(pb.problem.Stock.Pools))
	for i, p := range pb.problem.Stock.Pools {
		left := p.Remaining.Clone()
		for _, pn := range pb.sol.planned {
			if left.Unlimited() || pb.problem.Stock.VariantOf(pn.offer).Pool != i {
				continue
			}
			var largest resources.Amounts
			pb.nodeOffers.feasibleOffers(&pn).Each(func(o int) { largest = largest.Max(pb.problem.Stock.TypeOf(o).Capacity) })
			left.Subtract(largest, pn.copies)
		}
		out[i] = left.IsExceeded()
	}
	return out
}

// cheapestPrice returns the price of the cheapest offering that fits the node's pods, in billionths of a dollar per
// hour.
func (offers *nodeOffers) cheapestPrice(pn *plannedNode) float64 {
	accepted := func(o int) bool {
		return !slices.ContainsFunc(pn.allocations, func(a allocation) bool { return !offers.problem.Accepts.Sets[a.acceptSet].Has(o) })
	}
	return float64(offers.problem.Stock.LeastPrice(pn.offer, offers.used(pn), pn.podPorts(offers.queue), accepted))
}
