package packing

import (
	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// existingNodesFor returns the existing nodes in the domains that pods of the profile may use. It returns none if no
// pod in the domains satisfies a required affinity, because then only DaemonSet pods of a new node can satisfy the
// affinity.
func (sp splitter) existingNodesFor(p *topology.Profile, domains []int) bitset.Set {
	if len(sp.topo.DaemonOnlyAffinity(p, domains)) > 0 {
		return bitset.New(len(sp.rooms.Nodes))
	}
	return sp.topo.NodesIn(p, domains)
}

// withDaemonPods narrows an accept set to the offerings whose DaemonSet pods satisfy the required affinities that no
// other pod in the domains satisfies. set and the result are numbers of accept sets.
func (sp splitter) withDaemonPods(set int, p *topology.Profile, domains []int) int {
	for _, g := range sp.topo.DaemonOnlyAffinity(p, domains) {
		set = sp.problem.Accepts.Number(sp.problem.Accepts.Sets[set].Intersection(sp.queue.DaemonPods.Matched(g)))
	}
	return set
}
