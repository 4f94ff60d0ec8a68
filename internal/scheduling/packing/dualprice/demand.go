package dualprice

import (
	"cmp"
	"slices"
)

// Demand is a number of units (pods or bundles) of one class that accept the same set of offerings. The lower bound is
// computed for demands.
type Demand struct {
	Class int // number of the class
	Set   int // index into offering.Acceptance.Sets
	N     int // number of units; 0 in map keys
}

// Add adds n units of the class and the accept set to the map. In its keys, Demand.N is 0.
func Add(demands map[Demand]int, class, set, n int) {
	if n > 0 {
		demands[Demand{Class: class, Set: set}] += n
	}
}

// Sorted returns the demands of the map, which Add filled, sorted by class and accept set.
func Sorted(demands map[Demand]int) []Demand {
	out := make([]Demand, 0, len(demands))
	for d, n := range demands {
		d.N = n
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Demand) int { return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Set, b.Set)) })
	return out
}
