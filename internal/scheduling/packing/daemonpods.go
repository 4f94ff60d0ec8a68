package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// daemonPodsSuffice reports whether some accepted offering has DaemonSet pods for all required host
// affinities of the class. Then it needs no bundle.
func (bu bundler) daemonPodsSuffice(c int) bool {
	if bu.queue.daemonPods == nil {
		return false
	}
	groups, _ := bu.queue.profile(&bu.queue.classes[c]).RequiredHostGroups()
	return slices.ContainsFunc(bu.queue.classes[c].stages, func(stage int) bool {
		some := false
		bu.problem.accepts.Sets[stage].Each(func(o int) { some = some || bu.queue.daemonPods.HasAll(groups, o) })
		return some
	})
}

// existingNodesFor returns the existing nodes in the domains that pods of the profile may use.
func (sp splitter) existingNodesFor(p *topology.Profile, domains []int) bitset.Set {
	if len(sp.topo.UnmetAffinity(p, domains)) > 0 {
		return bitset.New(len(sp.rooms.Nodes))
	}
	return sp.topo.NodesIn(p, domains)
}

// withDaemonPods narrows an accept set to the offerings whose DaemonSet pods satisfy the affinities
// that nothing else in the domains does.
func (sp splitter) withDaemonPods(set int, p *topology.Profile, domains []int) int {
	for _, g := range sp.topo.UnmetAffinity(p, domains) {
		set = sp.problem.accepts.Number(sp.problem.accepts.Sets[set].Both(sp.queue.daemonPods.Matched(g)))
	}
	return set
}
