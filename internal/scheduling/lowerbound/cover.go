package lowerbound

import (
	"math"
	"slices"
)

// mostCovered bounds the pods for which the cheapest nodes are computed exactly: with more pods, one
// node more or less makes no difference.
const mostCovered = 512

// cover returns the highest price that the pods of one class, or of one group, cost
// alone on whole instances; or value, if that is more.
//
// A plan has instances for those pods, whatever else they hold. It costs no less
// than the cheapest instances that hold as many, because no instance holds more of them
// than fit on an empty one. For a group, cover replaces each pod by one that requests
// the minimum over the group and may run wherever any of them may.
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
			least := class{ask: slices.Clone(p.classes[among[0]].ask), cap: p.problem.Caps[g]}
			var holders []int
			for _, i := range among {
				least.count += p.classes[i].count
				for r, a := range p.classes[i].ask {
					least.ask[r] = min(least.ask[r], a)
				}
				holders = append(holders, p.holders[i]...)
			}
			slices.Sort(holders)
			value = max(value, p.cheapest(&least, slices.Compact(holders), value))
		}
	}
	return value
}

// cheapest returns the price of the cheapest nodes that hold all pods of the class, or for many pods a
// little less. It may return less if that is no more than value.
func (p *part) cheapest(c *class, holders []int, value float64) float64 {
	ratio, single := math.Inf(1), math.Inf(1)
	for _, i := range holders {
		k := &p.kinds[i]
		ratio = min(ratio, k.price/float64(k.times(c)))
		single = min(single, k.price)
	}
	if count := float64(c.count); c.count > mostCovered || count*single <= value {
		return count * ratio
	}
	least := make([]float64, c.count+1) // by number of pods: the lowest price
	for n := 1; n <= c.count; n++ {
		least[n] = math.Inf(1)
		for _, i := range holders {
			k := &p.kinds[i]
			least[n] = min(least[n], k.price+least[max(n-k.times(c), 0)])
		}
	}
	return least[c.count]
}
