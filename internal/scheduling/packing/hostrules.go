package packing

import (
	"math"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// hostRuleRoom returns how many more units of the class the host rules allow on the node.
func (f *filler) hostRuleRoom(pn *plannedNode, class int) int {
	pn.countDaemonPods(f.queue)
	c := &f.queue.Classes[class]
	if c.Members == nil {
		p := f.queue.Profile(c)
		if len(p.Host) == 0 && len(p.HostIn) == 0 {
			return math.MaxInt
		}
		return pn.host.Room(f.queue.Pods.Topology, p, f.hostRuleLimits(class))
	}
	room := math.MaxInt
	for _, part := range c.Members {
		limits := f.hostRuleLimits(class)
		limits.Together = true // the unit includes the pods that it needs on its node
		room = min(room, pn.host.Room(f.queue.Pods.Topology, f.queue.Profile(&f.queue.Classes[part.Class]), limits)/part.N)
	}
	return room
}

// hostRuleLimits returns the options with which host rules are evaluated for the class.
func (f *filler) hostRuleLimits(class int) topology.Limits {
	l := topology.Limits{Strict: true, DroppedWeight: f.queue.DroppedWeight[class]}
	if f.onExisting {
		l.Fewest, l.Strict, l.DroppedWeight = f.sol.topo.FewestOf, f.strictPreferences, f.sol.droppedWeightOnExisting
		l.HasPod = func(group int) bool { return f.sol.rooms.NodesWithPod(group).Any() }
	}
	switch {
	case f.sol.planFewest != nil:
		l.Fewest, l.Last = f.sol.fewestInPlan, true
	case !f.onExisting && f.queue.DaemonPods != nil:
		l.Fewest = f.sol.topo.FewestDaemonPods
	}
	return l
}

// fewestInPlan returns the number of pods of the group on the node with the fewest, or 0 if fewer nodes than
// minDomains count.
func (sol *solution) fewestInPlan(group, minDomains int) int {
	if f := sol.planFewest[group]; f.Nodes >= minDomains {
		return f.Pods
	}
	return 0
}

// findPlanFewest sets planFewest: the fewest pods of each host spread on any existing or planned
// node.
func (sol *solution) findPlanFewest() {
	sol.planFewest = map[int]existing.FewestPods{}
	dp := newDomainProjection(sol)
	for g, f := range sol.topo.Fewest {
		visible := dp.countedOffers(g)
		for i := range sol.planned {
			pn := &sol.planned[i]
			possible := dp.possibleOffers(i)
			if n := pn.matchedPods(sol.queue, g); visible.Meets(possible) && (f.Nodes == 0 || n < f.Pods) {
				f.Pods = n
			}
			other := possible.Clone()
			if other.AndNot(visible); possible.Any() && !other.Any() { // the node counts, whichever of its offerings is launched
				f.Nodes += pn.copies
			}
		}
		sol.planFewest[g] = f
	}
}
