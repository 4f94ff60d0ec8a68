package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// demand is a number of units that accept the same set of offerings, as the lower bound counts
// them.
type demand struct{ class, set, n int }

// demandOf returns the class and the accept set by which the lower bound counts a class. A part
// that could have been assigned to any domain counts as its whole class. The plan chose the
// domains, and the bound must hold for every plan.
func (q *queue) demandOf(c int) (class, set int) {
	p := &q.classes[c]
	if whole := &q.classes[p.base]; p.domains != nil && q.stage[c] == 0 && whole.firstStage == whole.hardSet {
		return p.base, whole.hardSet
	}
	return c, q.currentSet(c)
}

// addDemand adds n units to the demands.
func addDemand(demands map[demand]int, class, set, n int) {
	if n > 0 {
		demands[demand{class: class, set: set}] += n
	}
}

func sortedDemands(demands map[demand]int) []demand {
	out := make([]demand, 0, len(demands))
	for d, n := range demands {
		d.n = n
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b demand) int { return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.set, b.set)) })
	return out
}

// demands returns the unplaced units of the active classes, as the lower bound counts them.
func (q *queue) demands(active []int) []demand {
	units := map[demand]int{}
	for _, c := range active {
		class, set := q.demandOf(c)
		addDemand(units, class, set, q.left[c])
	}
	return sortedDemands(units)
}

// addBaseDemand adds n units of the whole class that a part belongs to, or of the members of a
// bundle. A bundle that fits no plan on more than one node stays one demand.
func (q *queue) addBaseDemand(units map[demand]int, class, n int) {
	c := &q.classes[class]
	if c.members == nil || c.oneNodeOnly {
		base := &q.classes[c.base]
		addDemand(units, c.base, base.hardSet, n)
		return
	}
	for _, m := range c.members {
		q.addBaseDemand(units, m.class, n*m.n)
	}
}

// boundEffort returns how many numbers the search for the lower bound may touch. The search gains a
// share of the pods' price, so few pods justify little work.
func boundEffort(demands []demand) int {
	const least, perUnit, most = 250_000, 1_000, 5_000_000
	effort := least
	for _, d := range demands {
		effort += min(d.n, most/perUnit) * perUnit
	}
	return min(effort, most)
}

// eligibleLots returns the indexes of the lots in the set that have every resource which the class
// requests.
func (pr *problem) eligibleLots(c *class, set bitset.Set, lots []offering.Lot) []int {
	var out []int
	for i, l := range lots {
		if !set.Has(l.Offer) {
			continue
		}
		room, enough := pr.stock.Room(l.Offer), true
		for r := range c.Ask {
			enough = enough && (c.Ask[r] <= 0 || room[r] > 0)
		}
		if enough {
			out = append(out, i)
		}
	}
	return out
}

// spreadCaps returns which host spreads the lower bound of the demands includes, and whether all of
// them hold for any plan. With forAnyPlan it includes only those. Otherwise the bound is one for
// the plans of this package: no new node has more of a spread's pods than its maxSkew, and the
// spreads that can matter are included.
func (pc *pricer) spreadCaps(demands []demand, sound bool) (counts func(group int) bool, all bool) {
	nodesNeeded, pods := map[int]int{}, 0
	for _, d := range demands {
		pods += d.n
		if most, group := pc.queue.profile(&pc.queue.classes[d.class]).Cap(nil); most < math.MaxInt {
			nodesNeeded[group] += (d.n + most - 1) / most
		}
	}
	capped := map[int]bool{}
	all = true
	for group, n := range nodesNeeded {
		if pc.queue.pods.Book.Groups[group].Form != topology.Spread {
			continue
		}
		capped[group] = pc.ground.KeepsNone(group)
		if !sound && !capped[group] && n*podsPerCappedNode > pods {
			capped[group], all = true, false
		}
	}
	return func(group int) bool { return capped[group] }, all
}

// podsPerCappedNode limits when a host spread is part of the lower bound. With more pods in the
// plan, for each node that the spread needs at least, there is so much choice among nodes that the
// spread adds no cost.
const podsPerCappedNode = 64
