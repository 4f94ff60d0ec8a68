package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
)

// maxAttempts bounds how often planning restarts because a domain could not take the pods assigned
// to it.
const maxAttempts = 4

// restart returns a new solution that uses what this attempt found out: no domain is assigned more
// pods than it could take.
func (sol *solution) restart(g *existing.TopologyState) *solution {
	next := newSolution(sol.problem, g)
	next.work.steps = sol.work.steps
	next.domainCaps, next.queue.withoutHostPreferences = maps.Clone(sol.domainCaps), maps.Clone(sol.queue.withoutHostPreferences)
	got := sol.queue.placedByPart()
	for c := range sol.queue.classes {
		if p := &sol.queue.classes[c]; p.domains != nil && sol.queue.left[c] > 0 {
			if sol.hasLimits() && sol.queue.hasHostPreferences(p) && !sol.queue.withoutHostPreferences[p.base] {
				next.queue.withoutHostPreferences[p.base] = true // preferences must not use up a limit: placing pods comes first
				continue
			}
			key := capKey(p.base, p.domains)
			next.domainCaps[key] = got[key]
		}
	}
	newSplitter(next).split()
	return next
}

// placedAsAssigned reports whether this plan placed what other assigned.
func (sol *solution) placedAsAssigned(other *solution) bool {
	return maps.Equal(sol.queue.placedByPart(), other.queue.assignedByPart())
}

// copyForRetry returns a copy of the plan with rooms, counts and limits computed anew, so that all
// pods placed so far count.
func (sol *solution) copyForRetry(topo *existing.TopologyState) *solution {
	next := newSolution(sol.problem, topo)
	next.work.steps, next.queue.withoutHostPreferences, next.narrowedSets = sol.work.steps, sol.queue.withoutHostPreferences, sol.narrowedSets
	next.queue.classes, next.queue.left = slices.Clone(sol.queue.classes), slices.Clone(sol.queue.left)
	next.queue.stage, next.queue.droppedWeight = slices.Clone(sol.queue.stage), slices.Clone(sol.queue.droppedWeight)
	next.queue.assigned, next.hostAssigned = maps.Clone(sol.queue.assigned), maps.Clone(sol.hostAssigned)
	next.placements = slices.Clone(sol.placements)
	next.recount()
	for i := range sol.planned {
		next.planned = append(next.planned, next.recomputedNode(&sol.planned[i]))
	}
	newSpreadVisibility(next).removeUncounted()
	return next
}

// recount subtracts the placed pods from the rooms and adds them to the counts.
func (sol *solution) recount() {
	for _, at := range sol.placements {
		c := &sol.queue.classes[at.class]
		free, host := sol.rooms.Room[at.node].Clone(), sol.rooms.Hosts[at.node].Clone()
		free.Take(c.Ask, at.n)
		sol.queue.addToTally(&host, c, at.n)
		sol.rooms.Set(at.node, free, append(sol.rooms.Ports[at.node], c.Lists...), host)
	}
	sol.topo.FindFewest(sol.rooms, sol.queue.pods.Topology, sol.topo.Counted)
	for c := range sol.queue.classes {
		if p := &sol.queue.classes[c]; p.domains != nil {
			sol.topo.DomainCounts.Add(sol.queue.profile(p), p.domains, sol.queue.unitCount(c)-sol.queue.left[c])
		}
	}
}

// recomputedNode returns the planned node with room and counts computed from its pods, and spends
// the limits for it.
func (sol *solution) recomputedNode(pn *plannedNode) plannedNode {
	out := sol.nodeOffers.nodeWith(pn.offer, slices.Clone(pn.allocations))
	out.copies, out.value = pn.copies, pn.value
	out.price = sol.nodeOffers.cheapestPrice(&out)
	sol.remaining[sol.problem.stock.VariantOf(pn.offer).Pool].Spend(sol.problem.stock.TypeOf(pn.offer).Capacity, pn.copies)
	return out
}
