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

// feasibleOffers returns the offerings that can each run all pods of the node. They are of the variant of its offering,
// every class accepts them, and they have enough room. Their DaemonSet pods do not differ for the rules of pods. A node
// on a reserved instance has only its own offering.
func (no *nodeOffers) feasibleOffers(pn *plannedNode) bitset.Set {
	out := no.problem.Stock.Alternatives(pn.offer, no.used(pn), pn.podPorts(no.queue))
	if no.problem.Stock.Offers[pn.offer].IsReserved() {
		return out
	}
	for i, a := range pn.allocations {
		if i == 0 || a.acceptSet != pn.allocations[i-1].acceptSet {
			out.And(no.problem.Accepts.Sets[a.acceptSet])
		}
	}
	no.queue.DaemonPods.KeepEqual(pn.offer, out)
	return out
}

// launchChoices returns the offerings that the node may be launched as, cheapest first, of any number of instance
// types. Each has room for all pods. tight is true if the NodePool is near its limits: then no choice is larger than
// the planned offering in limited resources.
func (no *nodeOffers) launchChoices(pn *plannedNode, tight bool) []int {
	return no.problem.Stock.Choices(pn.offer, no.feasibleOffers(pn), tight)
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
			left.Spend(largest, pn.copies)
		}
		out[i] = left.Overrun()
	}
	return out
}

// cheapestPrice returns the price of the cheapest offering that fits the node's pods, in billionths of a dollar per
// hour.
func (no *nodeOffers) cheapestPrice(pn *plannedNode) float64 {
	accepted := func(o int) bool {
		return !slices.ContainsFunc(pn.allocations, func(a allocation) bool { return !no.problem.Accepts.Sets[a.acceptSet].Has(o) })
	}
	return float64(no.problem.Stock.Least(pn.offer, no.used(pn), pn.podPorts(no.queue), accepted))
}
