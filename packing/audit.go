package packing

import (
	"math"
	"slices"

	"github.com/joiner-sh/joiner/terrain"
	"github.com/joiner-sh/joiner/topology"
)

// audit takes out of the plan what rules about domains would keep from being
// bound: pods that were counted on may have found no place themselves, or be where they do not count. kube-scheduler
// binds one pod at a time, so what must be is an order in which everybody can be bound. Nearly
// always any will do. r is the nodes without what the plan put there.
func (w *work) audit(ground *terrain.Ground, r *terrain.Rooms) {
	a := newAuditor(w, ground, r)
	if a.isEven() && !a.minds {
		return
	}
	if a.ground = w.standing(ground); a.isEven() {
		return
	}
	for _, b := range a.unbound() {
		w.withdrawFrom(b.class, b.at, b.left)
	}
	w.machines = slices.DeleteFunc(w.machines, func(m machine) bool { return m.copies == 0 || len(m.takes) == 0 })
	w.placed = slices.DeleteFunc(w.placed, func(p placed) bool { return p.n == 0 })
}

// auditor binds the pods of a plan, part by part, to their domains.
type auditor struct {
	*work
	ground *terrain.Ground
	empty  *terrain.Rooms // before any pod was placed
	census *topology.Census
	parts  []booking
	minds  bool           // somebody asks for more domains than one: there may be fewer than could be bought
	near   map[stand]bool // by group over host names, as class, and place: a pod is there
	begun  map[int]bool   // by group over host names: a pod is anywhere
}

// booking is the pods of a part, of which so many are not bound yet.
type booking struct {
	class, left int
	at          int      // the node, or the machine after all nodes, or anywhere
	free        bool     // no rule about the counts of a domain keeps them
	unseen      []unseen // by whom they are not counted
}

// anywhere is the place of pods for which it makes no difference where in their domains they are.
const anywhere = -1

func newAuditor(w *work, ground *terrain.Ground, r *terrain.Rooms) *auditor {
	a := &auditor{work: w, ground: ground, empty: r}
	s := w.sight()
	placed := make([]bool, len(w.q.classes)) // it matters where its pods are
	any := false
	for c := range w.q.classes {
		p := &w.q.classes[c]
		if placed[c] = a.isTied(p) || p.cell != nil && s.mayBeMissed(p); placed[c] {
			any = true
		} else if n := w.all(c) - w.left[c]; p.cell != nil && n > 0 {
			a.book(booking{class: c, left: n, at: anywhere})
		}
	}
	if !any {
		return a
	}
	for _, at := range w.stands() {
		if placed[at.class] {
			a.book(booking{class: at.class, left: at.n, at: at.at, unseen: s.unseen(at)})
		}
	}
	return a
}

func (a *auditor) book(b booking) {
	rules := a.q.profile(&a.q.classes[b.class]).Domain
	b.free = !slices.ContainsFunc(rules, func(r topology.Rule) bool { return r.Weight == 0 && r.Form != topology.Apart })
	a.minds = a.minds || slices.ContainsFunc(rules, func(r topology.Rule) bool { return r.Weight == 0 && r.MinDomains > 1 })
	a.parts = append(a.parts, b)
}

// isTied reports whether pods of the class must be on a host with others, or others with them.
func (a *auditor) isTied(c *class) bool {
	p := a.q.profile(c)
	return p.Follows() || slices.ContainsFunc(p.HostIn, func(g int) bool {
		return a.q.Book.Groups[g].Form == topology.Near && a.q.Book.Groups[g].Hard
	})
}

// isEven reports whether each pod could be the last to be bound.
func (a *auditor) isEven() bool {
	a.census = a.ground.Fork().Census
	for i := range a.parts {
		a.add(&a.parts[i], a.parts[i].left)
	}
	for i := range a.parts {
		b := &a.parts[i]
		a.add(b, -1)
		bad := a.refuses(b)
		a.add(b, 1)
		if bad {
			return false
		}
	}
	return true
}

// add notes n pods of the part in the census.
func (a *auditor) add(b *booking, n int) {
	c := &a.q.classes[b.class]
	if c.cell == nil {
		return
	}
	a.census.Add(a.q.profile(c), c.cell, n)
	for _, u := range b.unseen {
		a.census.Resident(u.group, u.domain, -n)
	}
}

// refuses reports whether a rule about domains keeps a pod of the part from being bound now.
func (a *auditor) refuses(b *booking) bool {
	c := &a.q.classes[b.class]
	return c.cell != nil && a.census.Refusal(a.q.profile(c), c.cell) != nil
}

// waits returns the group of which a pod must come to the host before one of the part; -1 if there is none.
func (a *auditor) waits(b *booking) int {
	for _, rule := range a.q.profile(&a.q.classes[b.class]).Host {
		if rule.Form != topology.Near || rule.Weight > 0 || a.near[stand{class: rule.Group, at: b.at}] {
			continue
		}
		there := b.at < len(a.empty.Nodes) && a.empty.Hosts[b.at].Matched(rule.Group) > 0
		first := rule.Self && !a.begun[rule.Group] && !a.isThere(a.empty, rule.Group)
		if !there && !first {
			return rule.Group
		}
	}
	return -1
}

// bind binds up to n pods of the part, and reports whether there were any.
func (a *auditor) bind(b *booking, n int) bool {
	any := false
	for ; n > 0 && b.left > 0 && !a.refuses(b) && a.waits(b) < 0; n-- {
		a.add(b, 1)
		b.left--
		any = true
		if b.at == anywhere {
			continue
		}
		for _, g := range a.q.profile(&a.q.classes[b.class]).HostIn {
			a.near[stand{class: g, at: b.at}], a.begun[g] = true, true
		}
	}
	return any
}

// unbound returns what is left when everybody is bound who can be: who has demands goes first, and who
// has none waits until the others need them to go on.
func (a *auditor) unbound() []booking {
	a.census, a.near, a.begun = a.ground.Fork().Census, map[stand]bool{}, map[int]bool{}
	for {
		for a.bindAll(false) {
		}
		if a.advance() {
			continue
		}
		if !a.bindAll(true) {
			break
		}
	}
	return slices.DeleteFunc(a.parts, func(b booking) bool { return b.left == 0 })
}

// bindAll binds pods of each part as far as they can be, and reports whether there were any.
func (a *auditor) bindAll(free bool) bool {
	any := false
	for i := range a.parts {
		if b := &a.parts[i]; free || !b.free {
			any = a.bind(b, math.MaxInt) || any
		}
	}
	return any
}

// advance binds a free pod in each domain that has the fewest of a spread for which others wait, and on each host on
// which others wait for it.
func (a *auditor) advance() bool {
	spreads, hosts := map[int]bool{}, map[stand]bool{}
	for i := range a.parts {
		b := &a.parts[i]
		if b.left == 0 {
			continue
		}
		c := &a.q.classes[b.class]
		if g := a.waits(b); g >= 0 {
			hosts[stand{class: g, at: b.at}] = true
		} else if c.cell != nil && !b.free {
			if r := a.census.Refusal(a.q.profile(c), c.cell); r != nil && r.Form == topology.Spread {
				spreads[r.Group] = true
			}
		}
	}
	any := false
	for i := range a.parts {
		b := &a.parts[i]
		if !b.free || b.left == 0 {
			continue
		}
		c := &a.q.classes[b.class]
		profile := a.q.profile(c)
		waited := func(g int) bool { return hosts[stand{class: g, at: b.at}] && !a.near[stand{class: g, at: b.at}] }
		if slices.ContainsFunc(profile.HostIn, waited) || c.cell != nil && a.census.IsFewest(profile, c.cell, spreads) {
			any = a.bind(b, 1) || any
		}
	}
	return any
}
