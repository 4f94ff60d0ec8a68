package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// podLocation is a number of pods of one class on one existing or planned node.
type podLocation struct {
	class, bundle int // bundle: the bundle class that the pods came in, or class itself
	host          int // index of the existing node; planned nodes follow after all existing ones
	n             int // number of pods, on all copies of the planned node
}

// removeAffinityCycles takes pods out of the plan whose required host affinities form a cycle.
// kube-scheduler could bind none of them first. It reports whether it removed any. r is the
// existing nodes before the plan placed pods.
func (pl *planner) removeAffinityCycles(ground *existing.Ground, r *existing.Rooms) bool {
	isRequired := func(g topology.Group) bool { return g.Form == topology.Near && g.Hard }
	if !slices.ContainsFunc(pl.q.Book.Groups, isRequired) {
		return false
	}
	unbound := pl.unboundByAffinity(pl.podLocations(), ground, r)
	for _, loc := range unbound {
		pl.unplace(loc)
	}
	pl.placements = slices.DeleteFunc(pl.placements, func(p existingPlacement) bool { return p.n == 0 })
	pl.planned = slices.DeleteFunc(pl.planned, func(pn plannedNode) bool { return len(pn.allocations) == 0 })
	return len(unbound) > 0
}

// podLocations returns the location of every placed pod, by class. Bundles are resolved to their
// members.
func (pl *planner) podLocations() []podLocation {
	var out []podLocation
	add := func(class, at, n int) {
		c := &pl.q.classes[class]
		if c.members == nil {
			out = append(out, podLocation{class, class, at, n})
		}
		for _, m := range c.members {
			out = append(out, podLocation{m.class, class, at, n * m.n})
		}
	}
	for _, p := range pl.placements {
		add(p.class, p.node, p.n)
	}
	for i := range pl.planned {
		for _, a := range pl.planned[i].allocations {
			add(a.class, len(pl.rooms.Nodes)+i, a.n*pl.planned[i].copies)
		}
	}
	return out
}

// unboundByAffinity binds pods in any order that required affinity allows, and returns the
// locations that it cannot bind.
func (pl *planner) unboundByAffinity(locations []podLocation, ground *existing.Ground, r *existing.Rooms) []podLocation {
	census := ground.Fork().Census
	hosts := make([]topology.Tally, len(r.Nodes)+len(pl.planned))
	for i := range r.Hosts {
		hosts[i] = r.Hosts[i].Clone()
	}
	for i := range pl.planned {
		hosts[len(r.Nodes)+i] = pl.q.daemonPods.On(pl.planned[i].offer)
	}
	podAnywhere := map[int]bool{} // groups over host names that have a bound pod
	mustWait := func(loc podLocation) bool {
		c := &pl.q.classes[loc.class]
		p := pl.q.profile(c)
		for _, rule := range p.Host {
			first := rule.Self && !podAnywhere[rule.Group] && !pl.hasPodOn(r, rule.Group)
			if rule.Form == topology.Near && rule.Weight == 0 && hosts[loc.host].Matched(rule.Group) == 0 && !first {
				return true
			}
		}
		return c.domains != nil && !census.Reaches(p, c.domains)
	}
	for before := -1; before != len(locations); {
		before = len(locations)
		locations = slices.DeleteFunc(locations, func(loc podLocation) bool {
			if mustWait(loc) {
				return false
			}
			c := &pl.q.classes[loc.class]
			p := pl.q.profile(c)
			if c.domains != nil {
				census.Add(p, c.domains, 1)
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

// hasPodOn reports whether the group counts a pod on one of the nodes r, or on a node that accepts
// no new pods.
func (pl *planner) hasPodOn(r *existing.Rooms, group int) bool {
	return pl.ground.Away[group] || r.Having(group).Any()
}

// unplace removes the pods from their node. If they came in a bundle, it removes the whole bundle.
func (pl *planner) unplace(loc podLocation) {
	if loc.host < len(pl.rooms.Nodes) {
		for i := range pl.placements {
			if p := &pl.placements[i]; p.node == loc.host && p.class == loc.bundle {
				pl.left[loc.bundle] += p.n
				p.n = 0
			}
		}
		return
	}
	pn := &pl.planned[loc.host-len(pl.rooms.Nodes)]
	pn.allocations = slices.DeleteFunc(slices.Clone(pn.allocations), func(a allocation) bool {
		if a.class != loc.bundle {
			return false
		}
		pl.left[loc.bundle] += a.n * pn.copies
		return true
	})
}
