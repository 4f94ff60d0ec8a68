package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// removeAffinityCycles removes from the plan the pods whose required affinities form a cycle, in which each pod waits
// for another pod. It reports whether it removed any pod. topo is the topology state before any pod was placed.
func (bf bindingFilter) removeAffinityCycles(topo *existing.TopologyState) bool {
	isRequired := func(g topology.Group) bool { return g.Kind == topology.Affinity && g.Hard }
	if !slices.ContainsFunc(bf.queue.Pods.Topology.Groups, isRequired) {
		return false
	}
	unbound := bf.unboundByAffinity(bf.sol.podLocations(), topo)
	for _, loc := range unbound {
		bf.sol.unplace(loc)
	}
	bf.sol.placements = slices.DeleteFunc(bf.sol.placements, func(p existingPlacement) bool { return p.n == 0 })
	bf.sol.planned = slices.DeleteFunc(bf.sol.planned, func(pn plannedNode) bool { return len(pn.allocations) == 0 })
	return len(unbound) > 0
}

// unboundByAffinity simulates that pods are bound in an order that required affinity allows, and returns the locations
// whose pods cannot be bound. One pod is enough to satisfy an affinity, so the simulation counts one pod per location.
func (bf bindingFilter) unboundByAffinity(locations []podLocation, topo *existing.TopologyState) []podLocation {
	r := bf.problem.Rooms // before any pod was placed
	counts := topo.Fork().DomainCounts
	hosts := make([]topology.HostCounts, len(r.Nodes)+len(bf.sol.planned))
	for i := range r.Hosts {
		hosts[i] = r.Hosts[i].Clone()
	}
	for i := range bf.sol.planned {
		hosts[len(r.Nodes)+i] = bf.queue.DaemonPods.On(bf.sol.planned[i].offer)
	}
	podAnywhere := map[int]bool{} // by group of a host rule: whether the simulation has bound a pod of the group
	mustWait := func(loc podLocation) bool {
		c := &bf.queue.Classes[loc.class]
		p := bf.queue.Profile(c)
		for _, rule := range p.Host {
			// The first pod of a group needs no other pod.
			isFirst := rule.Self && !podAnywhere[rule.Group] && !bf.sol.topo.HasPod(r, rule.Group)
			if rule.Kind == topology.Affinity && rule.Weight == 0 && hosts[loc.host].Matched(rule.Group) == 0 && !isFirst {
				return true
			}
		}
		return c.Domains != nil && !counts.SatisfiesAffinity(p, c.Domains)
	}
	for before := -1; before != len(locations); {
		before = len(locations)
		locations = slices.DeleteFunc(locations, func(loc podLocation) bool {
			if mustWait(loc) {
				return false
			}
			c := &bf.queue.Classes[loc.class]
			p := bf.queue.Profile(c)
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
