package lowerbound

import (
	"math"
	"slices"
)

// maxCoveredPods is the maximum number of pods for which the cheapest nodes are computed exactly. With more pods, one
// node more or less makes little difference.
const maxCoveredPods = 512

// cover computes, for each class and each group, the lowest price of whole instances for its pods alone. It
// returns the highest of these prices and value.
//
// The bound holds because a plan has instances for these pods. The plan costs at least as much
// as the cheapest instances for the same number of pods, because no instance holds more of these pods
// than an empty instance. For a group, cover replaces each pod by a pod that requests
// the minimum over the group and may run wherever any pod of the group may.
func (p *part) cover(value float64) float64 {
	members := make([][]int, len(p.problem.Caps)) // by group: its classes
	for i := range p.classes {
		value = max(value, p.cheapest(&p.classes[i], p.holders[i], value))
		for _, g := range p.classes[i].groups {
			members[g] = append(members[g], i)
		}
	}
	for g, among := range members {
		if len(among) > 1 {
			smallest := class{ask: slices.Clone(p.classes[among[0]].ask), cap: p.problem.Caps[g]}
			var holders []int
			for _, i := range among {
				smallest.count += p.classes[i].count
				for r, a := range p.classes[i].ask {
					smallest.ask[r] = min(smallest.ask[r], a)
				}
				holders = append(holders, p.holders[i]...)
			}
			slices.Sort(holders)
			value = max(value, p.cheapest(&smallest, slices.Compact(holders), value))
		}
	}
	return value
}

// cheapest returns the price of the cheapest nodes that hold all pods of the class, or a slightly lower price for
// more than maxCoveredPods pods. The caller ignores prices of at most value, so cheapest need not be exact below
// value. holders are the kinds that can hold a pod of the class.
func (p *part) cheapest(c *class, holders []int, value float64) float64 {
	perPod, perNode := math.Inf(1), math.Inf(1) // lowest price per pod of a full node; lowest price of a node
	for _, i := range holders {
		k := &p.kinds[i]
		perPod = min(perPod, k.price/float64(k.maxPods(c)))
		perNode = min(perNode, k.price)
	}
	if count := float64(c.count); c.count > maxCoveredPods || count*perNode <= value {
		return count * perPod
	}
	lowest := make([]float64, c.count+1) // by number of pods: the lowest price
	for n := 1; n <= c.count; n++ {
		lowest[n] = math.Inf(1)
		for _, i := range holders {
			k := &p.kinds[i]
			lowest[n] = min(lowest[n], k.price+lowest[max(n-k.maxPods(c), 0)])
		}
	}
	return lowest[c.count]
}
