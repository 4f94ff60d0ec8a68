package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// stand is pods of a class on one node or machine of the plan.
type stand struct {
	class, outer int // outer: the bundle that they came in, or the class itself
	at           int // the node, or the machine after all nodes
	n            int // how many, on all copies of the machine
}

// unwind takes pods out of the plan that must be near one another in a circle, so that none
// can be bound first, and reports whether there were any. r is the nodes without what the plan put there.
func (w *work) unwind(ground *existing.Ground, r *existing.Rooms) bool {
	demanded := func(g topology.Group) bool { return g.Form == topology.Near && g.Hard }
	if !slices.ContainsFunc(w.q.Book.Groups, demanded) {
		return false
	}
	loose := w.unanchored(w.stands(), ground, r)
	for _, s := range loose {
		w.takeOff(s)
	}
	w.placed = slices.DeleteFunc(w.placed, func(p placed) bool { return p.n == 0 })
	w.machines = slices.DeleteFunc(w.machines, func(m machine) bool { return len(m.takes) == 0 })
	return len(loose) > 0
}

// stands returns where the plan has pods of which class.
func (w *work) stands() []stand {
	var out []stand
	add := func(class, at, n int) {
		c := &w.q.classes[class]
		if c.members == nil {
			out = append(out, stand{class, class, at, n})
		}
		for _, m := range c.members {
			out = append(out, stand{m.class, class, at, n * m.n})
		}
	}
	for _, p := range w.placed {
		add(p.class, p.node, p.n)
	}
	for i := range w.machines {
		for _, t := range w.machines[i].takes {
			add(t.class, len(w.rooms.Nodes)+i, t.n*w.machines[i].copies)
		}
	}
	return out
}

// unanchored returns the stands that are left when all are bound that can be, whoever is next.
func (w *work) unanchored(stands []stand, ground *existing.Ground, r *existing.Rooms) []stand {
	census := ground.Fork().Census
	hosts := make([]topology.Tally, len(r.Nodes)+len(w.machines))
	for i := range r.Hosts {
		hosts[i] = r.Hosts[i].Clone()
	}
	for i := range w.machines {
		hosts[len(r.Nodes)+i] = w.q.guests.On(w.machines[i].offer)
	}
	begun := map[int]bool{} // groups over host names that have a pod
	waits := func(s stand) bool {
		c := &w.q.classes[s.class]
		p := w.q.profile(c)
		for _, rule := range p.Host {
			first := rule.Self && !begun[rule.Group] && !w.isThere(r, rule.Group)
			if rule.Form == topology.Near && rule.Weight == 0 && hosts[s.at].Matched(rule.Group) == 0 && !first {
				return true
			}
		}
		return c.cell != nil && !census.Reaches(p, c.cell)
	}
	for before := -1; before != len(stands); {
		before = len(stands)
		stands = slices.DeleteFunc(stands, func(s stand) bool {
			if waits(s) {
				return false
			}
			c := &w.q.classes[s.class]
			p := w.q.profile(c)
			if c.cell != nil {
				census.Add(p, c.cell, 1)
			}
			hosts[s.at].Add(p, 1)
			for _, g := range p.HostIn {
				begun[g] = true
			}
			return true
		})
	}
	return stands
}

// isThere reports whether the group counts a pod on one of the nodes, or on a node that takes no pods.
func (w *work) isThere(r *existing.Rooms, group int) bool {
	return w.ground.Away[group] || r.Having(group).Any()
}

// takeOff takes the pods off their node or machine, with the bundle that they came in.
func (w *work) takeOff(s stand) {
	if s.at < len(w.rooms.Nodes) {
		for i := range w.placed {
			if p := &w.placed[i]; p.node == s.at && p.class == s.outer {
				w.left[s.outer] += p.n
				p.n = 0
			}
		}
		return
	}
	m := &w.machines[s.at-len(w.rooms.Nodes)]
	m.takes = slices.DeleteFunc(slices.Clone(m.takes), func(t take) bool {
		if t.class != s.outer {
			return false
		}
		w.left[s.outer] += t.n * m.copies
		return true
	})
}
