package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/terrain"
	"github.com/joiner-sh/joiner/topology"
)

// audit takes out of the plan what rules about domains would keep from being
// bound: pods that were counted on may have found no place themselves. kube-scheduler
// binds one pod at a time, so what must be is an order in which everybody can be bound. Nearly
// always any will do.
func (w *work) audit(ground *terrain.Ground) {
	a := newAuditor(w, ground)
	if a.isEven() {
		return
	}
	for _, b := range a.unbound() {
		w.remove(b.class, b.left)
	}
}

// auditor binds the pods of a plan, part by part, to their domains.
type auditor struct {
	*work
	ground *terrain.Ground
	census *topology.Census
	parts  []booking
}

// booking is the pods of a part, of which so many are not bound yet.
type booking struct {
	class, left int
	free        bool // no rule about the counts of a domain keeps them
}

func newAuditor(w *work, ground *terrain.Ground) *auditor {
	a := &auditor{work: w, ground: ground}
	waits := func(r topology.Rule) bool { return r.Weight == 0 && r.Form != topology.Apart }
	for c := range w.q.classes {
		p := &w.q.classes[c]
		if n := w.all(c) - w.left[c]; p.cell != nil && n > 0 {
			a.parts = append(a.parts, booking{class: c, left: n, free: !slices.ContainsFunc(w.q.profile(p).Domain, waits)})
		}
	}
	return a
}

// isEven reports whether each pod could be the last to be bound.
func (a *auditor) isEven() bool {
	census := a.ground.Fork().Census
	for _, b := range a.parts {
		p := &a.q.classes[b.class]
		census.Add(a.q.profile(p), p.cell, b.left)
	}
	for _, b := range a.parts {
		p := &a.q.classes[b.class]
		profile := a.q.profile(p)
		census.Add(profile, p.cell, -1)
		bad := census.Refusal(profile, p.cell) != nil
		census.Add(profile, p.cell, 1)
		if bad {
			return false
		}
	}
	return true
}

// unbound returns what is left when everybody is bound who can be: who has demands goes first, and who
// has none waits until the others need them to go on.
func (a *auditor) unbound() []booking {
	a.census = a.ground.Fork().Census
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
		b := &a.parts[i]
		for (free || !b.free) && a.bind(b) {
			any = true
		}
	}
	return any
}

// bind binds one more pod of a part, if there is one and no rule keeps it.
func (a *auditor) bind(b *booking) bool {
	p := &a.q.classes[b.class]
	profile := a.q.profile(p)
	if b.left == 0 || a.census.Refusal(profile, p.cell) != nil {
		return false
	}
	a.census.Add(profile, p.cell, 1)
	b.left--
	return true
}

// advance binds a free pod in each domain that has the fewest of a spread for which others wait.
func (a *auditor) advance() bool {
	waits := map[int]bool{}
	for i := range a.parts {
		b := &a.parts[i]
		if b.free || b.left == 0 {
			continue
		}
		p := &a.q.classes[b.class]
		if r := a.census.Refusal(a.q.profile(p), p.cell); r != nil && r.Form == topology.Spread {
			waits[r.Group] = true
		}
	}
	any := false
	for i := range a.parts {
		b := &a.parts[i]
		if !b.free || b.left == 0 {
			continue
		}
		p := &a.q.classes[b.class]
		if a.census.IsFewest(a.q.profile(p), p.cell, waits) && a.bind(b) {
			any = true
		}
	}
	return any
}
