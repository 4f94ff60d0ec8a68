package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// audit takes out of the plan what rules about domains would keep from being
// bound: pods that were counted on may have found no place themselves, or be where they do not count. kube-scheduler
// binds one pod at a time, so what must be is an order in which everybody can be bound. Nearly
// always any will do. r is the nodes without what the plan put there.
func (w *work) audit(ground *existing.Ground, r *existing.Rooms) {
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
	ground *existing.Ground
	empty  *existing.Rooms // before any pod was placed
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
	patience    int      // how many others may come before: the more, the longer they can wait
	founds      bool     // they must be near each other: the first may go anywhere, as long as nobody is there whom they must be near
	unseen      []unseen // by whom they are not counted
}

// isFree reports whether no rule about how many are in a domain keeps the pods.
func (b *booking) isFree() bool { return b.patience == math.MaxInt }

// turn is 0 for pods that would rather go before others, else 1.
func (b *booking) turn() int {
	if b.founds {
		return 0
	}
	return 1
}

// anywhere is the place of pods for which it makes no difference where in their domains they are.
const anywhere = -1

func newAuditor(w *work, ground *existing.Ground, r *existing.Rooms) *auditor {
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
	b.patience = math.MaxInt
	for _, r := range a.q.profile(&a.q.classes[b.class]).Domain {
		if r.Form == topology.Spread && r.Weight == 0 {
			most := 2 * r.MaxSkew
			if r.Self {
				most++
			}
			b.patience = min(b.patience, most)
			a.minds = a.minds || r.MinDomains > 1
		}
		b.founds = b.founds || r.Form == topology.Near && r.Weight == 0 && r.Self
	}
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
		bad := a.refusal(b) != nil
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

// refusal returns the rule about domains that keeps a pod of the part from being bound now; nil if none does.
func (a *auditor) refusal(b *booking) *topology.Rule {
	c := &a.q.classes[b.class]
	if c.cell == nil {
		return nil
	}
	return a.census.Refusal(a.q.profile(c), c.cell)
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
	for ; n > 0 && b.left > 0 && a.refusal(b) == nil && a.waits(b) < 0; n-- {
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

// unbound returns what is left when everybody is bound who can be: who is spread goes first, the least patient before
// others, and who is not waits until those need them to go on.
func (a *auditor) unbound() []booking {
	slices.SortStableFunc(a.parts, func(x, y booking) int {
		return cmp.Or(cmp.Compare(x.patience, y.patience), cmp.Compare(x.turn(), y.turn()))
	})
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
		if b := &a.parts[i]; free || !b.isFree() {
			any = a.bind(b, math.MaxInt) || any
		}
	}
	return any
}

// help is what those need who wait.
type help struct {
	spreads map[int]bool    // groups: a pod in a domain that has the fewest
	places  map[unseen]bool // groups and domains: a pod there
	hosts   map[stand]bool  // groups over host names, as class, and places: likewise
}

// advance binds a free pod wherever one helps those on who wait.
func (a *auditor) advance() bool {
	h := a.wanted()
	any := false
	for i := range a.parts {
		if b := &a.parts[i]; b.isFree() && b.left > 0 && a.helps(b, h) {
			any = a.bind(b, 1) || any
		}
	}
	return any
}

// wanted returns what those need who wait.
func (a *auditor) wanted() help {
	h := help{map[int]bool{}, map[unseen]bool{}, map[stand]bool{}}
	for i := range a.parts {
		b := &a.parts[i]
		if b.left == 0 {
			continue
		}
		if g := a.waits(b); g >= 0 {
			h.hosts[stand{class: g, at: b.at}] = true
		} else if r := a.refusal(b); r != nil && r.Form == topology.Spread {
			h.spreads[r.Group] = true
		} else if r != nil && r.Form == topology.Near {
			h.places[unseen{r.Group, a.domain(&a.q.classes[b.class], r.Group)}] = true
		}
	}
	return h
}

// helps reports whether a pod of the part is of help.
func (a *auditor) helps(b *booking, h help) bool {
	c := &a.q.classes[b.class]
	profile := a.q.profile(c)
	first := func(g int) bool {
		at := stand{class: g, at: b.at}
		return h.hosts[at] && !a.near[at]
	}
	there := func(g int) bool { return h.places[unseen{g, a.domain(c, g)}] }
	return slices.ContainsFunc(profile.HostIn, first) ||
		c.cell != nil && (a.census.IsFewest(profile, c.cell, h.spreads) || slices.ContainsFunc(profile.In, there))
}

// domain returns the class's domain of the label of a group; -1 if it keeps to none.
func (a *auditor) domain(c *class, group int) int {
	if k := slices.Index(a.q.profile(c).Keys, a.q.Book.Groups[group].Key); k >= 0 {
		return c.cell[k]
	}
	return -1
}
