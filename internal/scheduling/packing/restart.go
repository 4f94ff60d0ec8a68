package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
)

// maxAttempts bounds how often planning restarts because a domain could not take the pods assigned
// to it.
const maxAttempts = 4

// hasShortDomain reports whether some domain took fewer pods than were assigned to it.
func (pl *planner) hasShortDomain() bool {
	for c := range pl.q.classes {
		if pl.q.classes[c].domains != nil && pl.left[c] > 0 {
			return true
		}
	}
	return false
}

// placedByPart returns how many units of each part are placed, for parts with any.
func (pl *planner) placedByPart() map[string]int {
	out := map[string]int{}
	for c := range pl.q.classes {
		p := &pl.q.classes[c]
		if n := pl.unitCount(c) - pl.left[c]; p.domains != nil && n > 0 {
			out[capKey(p.base, p.domains)] = n
		}
	}
	return out
}

// assignedByPart returns how many units were assigned to each part.
func (pl *planner) assignedByPart() map[string]int {
	out := map[string]int{}
	for c, n := range pl.assigned {
		p := &pl.q.classes[c]
		out[capKey(p.base, p.domains)] = n
	}
	return out
}

// unitCount returns how many units the class has, including those in bundles.
func (pl *planner) unitCount(c int) int {
	if pl.q.classes[c].domains == nil {
		return pl.q.classes[c].units()
	}
	return pl.assigned[c]
}

// restart returns a new planner that uses what this attempt found out: no domain is assigned more
// pods than it could take.
func (pl *planner) restart(r *existing.Rooms, g *existing.Ground, q *queue) *planner {
	next := newPlanner(pl.stock, q, pl.accepts, r, g, pl.effort)
	next.steps = pl.steps
	next.domainCaps, next.withoutHostPreferences = maps.Clone(pl.domainCaps), maps.Clone(pl.withoutHostPreferences)
	got := pl.placedByPart()
	for c := range pl.q.classes {
		if p := &pl.q.classes[c]; p.domains != nil && pl.left[c] > 0 {
			if pl.hasLimits() && pl.hasHostPreferences(p) && !pl.withoutHostPreferences[p.base] {
				next.withoutHostPreferences[p.base] = true // preferences must not use up a limit: placing pods comes first
				continue
			}
			key := capKey(p.base, p.domains)
			next.domainCaps[key] = got[key]
		}
	}
	next.split()
	return next
}

// hasLimits reports whether some NodePool has limits.
func (pl *planner) hasLimits() bool {
	return slices.ContainsFunc(pl.budgets, func(b offering.Budget) bool { return !b.Unlimited() })
}

// placedAsAssigned reports whether this plan placed what other assigned.
func (pl *planner) placedAsAssigned(other *planner) bool {
	return maps.Equal(pl.placedByPart(), other.assignedByPart())
}

// removeUnassigned takes pods out of the plan that other did not assign to their domain. They would
// be valid there only with pods that were not placed.
func (pl *planner) removeUnassigned(other *planner) {
	assigned := other.assignedByPart()
	for c := range pl.q.classes {
		p := &pl.q.classes[c]
		if p.domains == nil {
			continue
		}
		if n := pl.unitCount(c) - pl.left[c] - assigned[capKey(p.base, p.domains)]; n > 0 {
			pl.remove(c, n)
		}
	}
}

// remove takes n units of the class off new nodes first, and then off existing ones.
func (pl *planner) remove(c, n int) {
	for i := len(pl.planned) - 1; i >= 0 && n > 0; i-- {
		n = pl.removeFromPlanned(i, c, n)
	}
	pl.planned = slices.DeleteFunc(pl.planned, func(pn plannedNode) bool { return pn.copies == 0 || len(pn.allocations) == 0 })
	for i := len(pl.placements) - 1; i >= 0 && n > 0; i-- {
		if at := &pl.placements[i]; at.class == c {
			off := min(at.n, n)
			at.n -= off
			n -= off
			pl.left[c] += off
		}
	}
}

// removeFromPlanned takes units of the class off the copies of one planned node, and returns how
// many remain to be removed.
func (pl *planner) removeFromPlanned(i, c, n int) int {
	t := slices.IndexFunc(pl.planned[i].allocations, func(a allocation) bool { return a.class == c })
	if t < 0 {
		return n
	}
	each := pl.planned[i].allocations[t].n
	for _, off := range [2]int{each, n % each} {
		copies := min(n/max(off, 1), pl.planned[i].copies)
		if off == 0 || copies == 0 {
			continue
		}
		less := pl.planned[i].clone()
		less.copies = copies
		if less.allocations[t].n -= off; less.allocations[t].n == 0 {
			less.allocations = slices.Delete(less.allocations, t, t+1)
		}
		pl.planned[i].copies -= copies
		pl.planned = append(pl.planned, less)
		pl.left[c] += copies * off
		n -= copies * off
	}
	return n
}

// removeAt takes n pods of the class off one host, or off any. A bundle is removed as a whole. It
// may leave planned nodes without copies or pods, and placements of no pods.
func (pl *planner) removeAt(c, at, n int) {
	for _, loc := range slices.Backward(pl.podLocations()) {
		if n <= 0 {
			return
		}
		if loc.class != c || at != anyHost && loc.host != at {
			continue
		}
		nodes := len(pl.rooms.Nodes)
		switch {
		case loc.bundle != loc.class:
			pl.unplace(loc)
			n -= loc.n
		case loc.host >= nodes:
			n = pl.removeFromPlanned(loc.host-nodes, c, n)
		default:
			n = pl.removeFromNode(loc.host, c, n)
		}
	}
}

// removeFromNode takes units of the class off an existing node, and returns how many remain to be
// removed.
func (pl *planner) removeFromNode(node, c, n int) int {
	for i := range pl.placements {
		if at := &pl.placements[i]; at.node == node && at.class == c {
			off := min(at.n, n)
			at.n -= off
			n -= off
			pl.left[c] += off
		}
	}
	return n
}
