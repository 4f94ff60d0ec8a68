package packing

import (
	"math"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// hostRuleRoom returns how many more units of the class the host rules allow on the node; math.MaxInt if no rule limits
// them. Host rules are the topology rules over host names.
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
	for _, member := range c.Members {
		limits := f.hostRuleLimits(class)
		limits.Together = true // the bundle includes the pods to which its members have affinity
		room = min(room, pn.host.Room(f.queue.Pods.Topology, f.queue.Profile(&f.queue.Classes[member.Class]), limits)/member.N)
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

// fewestInPlan returns the minimum number of the group's pods on a node, or 0 if the group's spread counts fewer nodes
// than minDomains.
func (sol *solution) fewestInPlan(group, minDomains int) int {
	if fewest := sol.planFewest[group]; fewest.Nodes >= minDomains {
		return fewest.Pods
	}
	return 0
}

// findPlanFewest sets planFewest. FewestPods.Nodes includes a planned node only if the spread counts the node for each
// of its possible offerings.
func (sol *solution) findPlanFewest() {
	sol.planFewest = map[int]existing.FewestPods{}
	dp := newDomainProjection(sol)
	for g, fewest := range sol.topo.Fewest {
		counted := dp.countedOffers(g)
		for i := range sol.planned {
			pn := &sol.planned[i]
			possible := dp.possibleOffers(i)
			if n := pn.matchedPods(sol.queue, g); counted.Intersects(possible) && (fewest.Nodes == 0 || n < fewest.Pods) {
				fewest.Pods = n
			}
			uncounted := possible.Clone()
			if uncounted.AndNot(counted); possible.Any() && !uncounted.Any() {
				fewest.Nodes += pn.copies
			}
		}
		sol.planFewest[g] = fewest
	}
}
