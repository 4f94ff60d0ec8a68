package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/binding"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

// removeUnassigned removes from each domain the pods beyond the number that the attempt next assigned to it.
// These pods satisfy their rules only together with pods that were not placed.
func (sol *solution) removeUnassigned(next *solution) {
	assigned := next.queue.AssignedByPart()
	for c := range sol.queue.Classes {
		class := &sol.queue.Classes[c]
		if class.Domains == nil {
			continue
		}
		if n := sol.queue.UnitCount(c) - sol.queue.Left[c] - assigned[pending.PartKey(class.WholeClass, class.Domains)]; n > 0 {
			sol.remove(c, n)
		}
	}
}

// remove removes n units of the class from nodes: first from planned nodes, then from existing nodes. Afterwards,
// there may be placements of zero units. Like the other functions of this file, it does not update the free room,
// the topology state and the remaining limits.
func (sol *solution) remove(c, n int) {
	for i := len(sol.planned) - 1; i >= 0 && n > 0; i-- {
		n = sol.removeFromPlanned(i, c, n)
	}
	sol.planned = slices.DeleteFunc(sol.planned, func(pn plannedNode) bool { return pn.copies == 0 || len(pn.allocations) == 0 })
	for i := len(sol.placements) - 1; i >= 0 && n > 0; i-- {
		if placement := &sol.placements[i]; placement.class == c {
			removed := min(placement.n, n)
			placement.n -= removed
			n -= removed
			sol.queue.Left[c] += removed
		}
	}
}

// removeFromPlanned removes up to n units of the class from the copies of one planned node, and returns how many
// remain to be removed. It takes all units from as many copies as it can, and the rest from one more copy. Changed
// copies become a new planned node.
func (sol *solution) removeFromPlanned(i, c, n int) int {
	at := slices.IndexFunc(sol.planned[i].allocations, func(a allocation) bool { return a.class == c })
	if at < 0 {
		return n
	}
	allUnits := sol.planned[i].allocations[at].n
	for _, perCopy := range [2]int{allUnits, n % allUnits} {
		copies := min(n/max(perCopy, 1), sol.planned[i].copies)
		if perCopy == 0 || copies == 0 {
			continue
		}
		reduced := sol.planned[i].clone()
		reduced.copies = copies
		if reduced.allocations[at].n -= perCopy; reduced.allocations[at].n == 0 {
			reduced.allocations = slices.Delete(reduced.allocations, at, at+1)
		}
		sol.planned[i].copies -= copies
		sol.planned = append(sol.planned, reduced)
		sol.queue.Left[c] += copies * perCopy
		n -= copies * perCopy
	}
	return n
}

// removeAt removes n pods of the class from one host, or from any host if host is binding.AnyHost. The pods of a bundle
// are removed with the whole bundle. Afterwards, there may be planned nodes without copies or pods, and placements
// of zero units.
func (sol *solution) removeAt(c, host, n int) {
	for _, loc := range slices.Backward(sol.podLocations()) {
		if n <= 0 {
			return
		}
		if loc.class != c || host != binding.AnyHost && loc.host != host {
			continue
		}
		nodes := len(sol.rooms.Nodes)
		switch {
		case loc.bundle != loc.class:
			sol.unplace(loc)
			n -= loc.n
		case loc.host >= nodes:
			n = sol.removeFromPlanned(loc.host-nodes, c, n)
		default:
			n = sol.removeFromNode(loc.host, c, n)
		}
	}
}

// removeFromNode removes up to n units of the class from an existing node, and returns how many remain to be removed.
func (sol *solution) removeFromNode(node, c, n int) int {
	for i := range sol.placements {
		if placement := &sol.placements[i]; placement.node == node && placement.class == c {
			removed := min(placement.n, n)
			placement.n -= removed
			n -= removed
			sol.queue.Left[c] += removed
		}
	}
	return n
}

// unplace removes all pods of the location from their node, and makes them unplaced. If they are in a bundle, it
// removes all bundles of that class from the node.
func (sol *solution) unplace(loc podLocation) {
	if loc.host < len(sol.rooms.Nodes) {
		for i := range sol.placements {
			if p := &sol.placements[i]; p.node == loc.host && p.class == loc.bundle {
				sol.queue.Left[loc.bundle] += p.n
				p.n = 0
			}
		}
		return
	}
	pn := &sol.planned[loc.host-len(sol.rooms.Nodes)]
	pn.allocations = slices.DeleteFunc(slices.Clone(pn.allocations), func(a allocation) bool {
		if a.class != loc.bundle {
			return false
		}
		sol.queue.Left[loc.bundle] += a.n * pn.copies
		return true
	})
}
