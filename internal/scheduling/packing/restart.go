package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

// maxAttempts is the maximum number of attempts to plan, including the first. Planning restarts if new nodes add
// domains, or if a domain had no room for the pods that were assigned to it. No attempt starts after half of the work
// limit, so that it can take as many steps as all attempts before it.
const maxAttempts = 4

// restart returns a new solution without placed pods, in which classes are split again. If a domain had too little room
// for the pods of a class, restart assigns at most as many of these pods to the domain as were placed there.
func (sol *solution) restart(topo *existing.TopologyState) *solution {
	next := newSolution(sol.problem, topo)
	next.work.steps = sol.work.steps
	next.domainCaps, next.queue.WithoutHostPreferences = maps.Clone(sol.domainCaps), maps.Clone(sol.queue.WithoutHostPreferences)
	placed := sol.queue.PlacedByPart()
	for c := range sol.queue.Classes {
		if class := &sol.queue.Classes[c]; class.Domains != nil && sol.queue.Left[c] > 0 {
			if sol.hasLimits() && sol.queue.HasHostPreferences(class) && !sol.queue.WithoutHostPreferences[class.WholeClass] {
				next.queue.WithoutHostPreferences[class.WholeClass] = true // preferences must not use up a limit
				continue
			}
			key := pending.PartKey(class.WholeClass, class.Domains)
			next.domainCaps[key] = placed[key]
		}
	}
	newSplitter(next).split()
	return next
}

// placedAsAssigned reports whether the solution placed, in each part, as many units as other assigned to the part.
// Then no other attempt is needed.
func (sol *solution) placedAsAssigned(other *solution) bool {
	return maps.Equal(sol.queue.PlacedByPart(), other.queue.AssignedByPart())
}

// copyForRetry returns a copy of the solution. Its free rooms, host and domain counts and remaining limits are computed
// from topo and from the pods placed so far.
func (sol *solution) copyForRetry(topo *existing.TopologyState) *solution {
	next := newSolution(sol.problem, topo)
	next.work.steps, next.queue.WithoutHostPreferences, next.narrowedSets = sol.work.steps, sol.queue.WithoutHostPreferences, sol.narrowedSets
	next.queue.Classes, next.queue.Left = slices.Clone(sol.queue.Classes), slices.Clone(sol.queue.Left)
	next.queue.Stage, next.queue.DroppedWeight = slices.Clone(sol.queue.Stage), slices.Clone(sol.queue.DroppedWeight)
	next.queue.Assigned, next.hostAssigned = maps.Clone(sol.queue.Assigned), maps.Clone(sol.hostAssigned)
	next.placements = slices.Clone(sol.placements)
	next.recount()
	for i := range sol.planned {
		next.planned = append(next.planned, next.recomputedNode(&sol.planned[i]))
	}
	newSpreadVisibility(next).removeUncounted()
	return next
}

// recount subtracts the pods on existing nodes from the rooms, and adds the placed pods to host and domain counts.
func (sol *solution) recount() {
	for _, placement := range sol.placements {
		c := &sol.queue.Classes[placement.class]
		free, host := sol.rooms.Room[placement.node].Clone(), sol.rooms.Hosts[placement.node].Clone()
		free.SubtractTimes(c.Ask, placement.n)
		sol.queue.AddToHostCounts(&host, c, placement.n)
		sol.rooms.Set(placement.node, free, append(sol.rooms.Ports[placement.node], c.PortLists...), host)
	}
	sol.topo.FindFewest(sol.rooms, sol.queue.Pods.Topology, sol.topo.Counted)
	for c := range sol.queue.Classes {
		if p := &sol.queue.Classes[c]; p.Domains != nil {
			sol.topo.DomainCounts.Add(sol.queue.Profile(p), p.Domains, sol.queue.UnitCount(c)-sol.queue.Left[c])
		}
	}
}

// recomputedNode returns the planned node with its room and counts computed again from its pods. It subtracts the node
// from the remaining limits.
func (sol *solution) recomputedNode(pn *plannedNode) plannedNode {
	out := sol.nodeOffers.nodeWith(pn.offer, slices.Clone(pn.allocations))
	out.copies, out.value = pn.copies, pn.value
	out.price = sol.nodeOffers.cheapestPrice(&out)
	sol.remaining[sol.problem.Stock.VariantOf(pn.offer).Pool].Subtract(sol.problem.Stock.TypeOf(pn.offer).Capacity, pn.copies)
	return out
}
