package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// removeAffinityCycles removes pods from the plan if their required affinities form a cycle: kube-scheduler could bind
// none of them first. It reports whether it removed any. topo is the topology state before any pod was placed.
func (bk bindingCheck) removeAffinityCycles(topo *existing.TopologyState) bool {
	isRequired := func(g topology.Group) bool { return g.Kind == topology.Affinity && g.Hard }
	if !slices.ContainsFunc(bk.queue.Pods.Topology.Groups, isRequired) {
		return false
	}
	unbound := bk.unboundByAffinity(bk.sol.podLocations(), topo)
	for _, loc := range unbound {
		bk.sol.unplace(loc)
	}
	bk.sol.placements = slices.DeleteFunc(bk.sol.placements, func(p existingPlacement) bool { return p.n == 0 })
	bk.sol.planned = slices.DeleteFunc(bk.sol.planned, func(pn plannedNode) bool { return len(pn.allocations) == 0 })
	return len(unbound) > 0
}

// unboundByAffinity simulates that pods are bound in an order that required affinity allows, and returns the locations
// whose pods cannot be bound. Affinity needs only one pod, so it counts one pod for each location.
func (bk bindingCheck) unboundByAffinity(locations []podLocation, topo *existing.TopologyState) []podLocation {
	r := bk.problem.Rooms // before any pod was placed
	counts := topo.Fork().DomainCounts
	hosts := make([]topology.HostCounts, len(r.Nodes)+len(bk.sol.planned))
	for i := range r.Hosts {
		hosts[i] = r.Hosts[i].Clone()
	}
	for i := range bk.sol.planned {
		hosts[len(r.Nodes)+i] = bk.queue.DaemonPods.On(bk.sol.planned[i].offer)
	}
	podAnywhere := map[int]bool{} // groups over host names that have a pod bound in the simulation
	mustWait := func(loc podLocation) bool {
		c := &bk.queue.Classes[loc.class]
		p := bk.queue.Profile(c)
		for _, rule := range p.Host {
			isFirst := rule.Self && !podAnywhere[rule.Group] && !bk.sol.topo.HasPod(r, rule.Group) // the exception for the first pod
			if rule.Kind == topology.Affinity && rule.Weight == 0 && hosts[loc.host].Matched(rule.Group) == 0 && !isFirst {
				return true
			}
		}
		return c.Domains != nil && !counts.Reaches(p, c.Domains)
	}
	for before := -1; before != len(locations); {
		before = len(locations)
		locations = slices.DeleteFunc(locations, func(loc podLocation) bool {
			if mustWait(loc) {
				return false
			}
			c := &bk.queue.Classes[loc.class]
			p := bk.queue.Profile(c)
			if c.Domains != nil {
				counts.Add(p, c.Domains, 1)
			}
			hosts[loc.host].Add(p, 1)
			for _, g := range p.HostIn {
				podAnywhere[g] = true
			}
			return true
		})
	}
	return locations
}
