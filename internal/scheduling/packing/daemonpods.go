package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// applyDaemonPods removes the offerings from the accept sets whose DaemonSet pods a class must
// avoid, or that avoid the class.
func (q *queue) applyDaemonPods(g *existing.Guests, a *offering.Acceptance) {
	if g == nil {
		return
	}
	q.daemonPods = g
	for i := range q.classes {
		c := &q.classes[i]
		forbidden := g.Forbidden(q.Book, q.profile(c))
		if forbidden == nil {
			continue
		}
		without := func(set int) int {
			left := a.Sets[set].Clone()
			left.AndNot(forbidden)
			return a.Number(left)
		}
		c.hardSet = without(c.hardSet)
		var stages []int
		for _, stage := range c.stages {
			if n := without(stage); !slices.Contains(stages, n) && a.AnyTakes(a.Sets[n], &c.Class) {
				stages = append(stages, n)
			}
		}
		if c.stages, c.firstStage = stages, -1; len(stages) > 0 {
			c.firstStage = stages[0]
		}
	}
}

// countDaemonPods adds the DaemonSet pods of its offering to the node's host counts, once.
func (q *queue) countDaemonPods(pn *plannedNode) {
	if q.daemonPods == nil || pn.hasDaemonPods || pn.offer < 0 {
		return
	}
	pn.hasDaemonPods, pn.host = true, q.daemonPods.On(pn.offer)
}

// matchedPods returns how many pods the group counts on the planned node.
func (pl *planner) matchedPods(pn *plannedNode, group int) int {
	pl.q.countDaemonPods(pn)
	return pn.host.Matched(group)
}

// daemonPodsSuffice reports whether some accepted offering has DaemonSet pods for all required host
// affinities of the class. Then it needs no bundle.
func (pl *planner) daemonPodsSuffice(c int) bool {
	if pl.q.daemonPods == nil {
		return false
	}
	groups, _ := pl.requiredHostGroups(&pl.q.classes[c])
	return slices.ContainsFunc(pl.q.classes[c].stages, func(stage int) bool {
		some := false
		pl.accepts.Sets[stage].Each(func(o int) { some = some || pl.q.daemonPods.Are(groups, o) })
		return some
	})
}

// existingNodesFor returns the existing nodes in the domains that pods of the profile may use.
func (pl *planner) existingNodesFor(p *topology.Profile, domains []int) bitset.Set {
	if len(pl.ground.Company(p, domains)) > 0 {
		return bitset.New(len(pl.rooms.Nodes))
	}
	return pl.ground.NodesIn(p, domains)
}

// withDaemonPods narrows an accept set to the offerings whose DaemonSet pods satisfy the affinities
// that nothing else in the domains does.
func (pl *planner) withDaemonPods(set int, p *topology.Profile, domains []int) int {
	for _, g := range pl.ground.Company(p, domains) {
		set = pl.accepts.Number(pl.accepts.Sets[set].Both(pl.q.daemonPods.Matched(g)))
	}
	return set
}
