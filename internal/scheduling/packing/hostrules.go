package packing

import (
	"math"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// hostRuleRoom returns how many more units of the class the host rules allow on the node.
func (f *filler) hostRuleRoom(pn *plannedNode, class int) int {
	f.q.countDaemonPods(pn)
	c := &f.q.classes[class]
	if c.members == nil {
		p := f.q.profile(c)
		if len(p.Host) == 0 && len(p.HostIn) == 0 {
			return math.MaxInt
		}
		return pn.host.Room(f.q.Book, p, f.hostRuleLimits(class))
	}
	room := math.MaxInt
	for _, part := range c.members {
		limits := f.hostRuleLimits(class)
		limits.Together = true // the unit includes the pods that it needs on its node
		room = min(room, pn.host.Room(f.q.Book, f.q.profile(&f.q.classes[part.class]), limits)/part.n)
	}
	return room
}

// hostRuleLimits returns how to judge the host rules for the class.
func (f *filler) hostRuleLimits(class int) topology.Limits {
	l := topology.Limits{Strict: true, Light: f.droppedWeight[class]}
	if f.onExisting {
		l.Fewest, l.Strict, l.Light = f.ground.FewestOf, f.strictPreferences, f.droppedWeightOnExisting
		l.Somewhere = func(group int) bool { return f.rooms.Having(group).Any() }
	}
	switch {
	case f.planFewest != nil:
		l.Fewest, l.Last = f.fewestInPlan, true
	case !f.onExisting && f.q.daemonPods != nil:
		l.Fewest = f.ground.FewestGuests
	}
	return l
}

// fewestInPlan returns the pods on the node with the fewest, or 0 if fewer nodes than minDomains
// count.
func (pl *planner) fewestInPlan(group, minDomains int) int {
	if f := pl.planFewest[group]; f.Nodes >= minDomains {
		return f.Pods
	}
	return 0
}

// findPlanFewest sets planFewest: the fewest pods of each host spread on any existing or planned
// node.
func (pl *planner) findPlanFewest() {
	pl.planFewest = map[int]existing.Scarcity{}
	dp := &domainProjection{planner: pl}
	for g, f := range pl.ground.Fewest {
		visible := dp.countedOffers(g)
		for i := range pl.planned {
			pn := &pl.planned[i]
			possible := dp.possibleOffers(i)
			if n := pl.matchedPods(pn, g); visible.Meets(possible) && (f.Nodes == 0 || n < f.Pods) {
				f.Pods = n
			}
			other := possible.Clone()
			if other.AndNot(visible); possible.Any() && !other.Any() { // it counts, whichever offering is launched
				f.Nodes += pn.copies
			}
		}
		pl.planFewest[g] = f
	}
}

// addToTally adds n units of the class to the counts of a host.
func (pl *planner) addToTally(t *topology.Tally, c *class, n int) {
	if c.members == nil {
		if p := pl.q.profile(c); len(p.Host) > 0 || len(p.HostIn) > 0 {
			t.Add(p, n)
		}
		return
	}
	for _, m := range c.members {
		t.Add(pl.q.profile(&pl.q.classes[m.class]), n*m.n)
	}
}

// podsPerCappedNode limits when a host spread is part of the lower bound. With more pods in the
// plan, for each node that the spread needs at least, there is so much choice among nodes that the
// spread adds no cost.
const podsPerCappedNode = 64

// spreadCaps returns which host spreads the lower bound of the demands includes, and whether all of
// them hold for any plan. With forAnyPlan it includes only those. Otherwise the bound is one for
// the plans of this package: no new node has more of a spread's pods than its maxSkew, and the
// spreads that can matter are included.
func (pl *planner) spreadCaps(demands []demand, sound bool) (counts func(group int) bool, all bool) {
	nodesNeeded, pods := map[int]int{}, 0
	for _, d := range demands {
		pods += d.n
		if most, group := pl.q.profile(&pl.q.classes[d.class]).Cap(nil); most < math.MaxInt {
			nodesNeeded[group] += (d.n + most - 1) / most
		}
	}
	capped := map[int]bool{}
	all = true
	for group, n := range nodesNeeded {
		if pl.q.Book.Groups[group].Form != topology.Spread {
			continue
		}
		capped[group] = pl.ground.KeepsNone(group)
		if !sound && !capped[group] && n*podsPerCappedNode > pods {
			capped[group], all = true, false
		}
	}
	return func(group int) bool { return capped[group] }, all
}
