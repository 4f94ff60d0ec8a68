package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// bundle ties pods together that must be on one machine: those that want to be
// near themselves all in one unit, the others each with its share of those
// whom they must be near. It returns the bundles, as new classes.
func (w *work) bundle() []int {
	from := len(w.q.classes)
	for {
		made := len(w.q.classes)
		for _, c := range slices.Clone(w.order) {
			if w.left[c] == 0 || !w.q.profile(&w.q.classes[c]).Follows() || w.hasCompany(c) {
				continue
			}
			if groups, _ := w.needs(&w.q.classes[c]); !w.clump(c) {
				w.attach(c, groups, false)
			}
		}
		// Whoever must be near a pod that has just been tied can be tied to it now.
		if len(w.q.classes) == made {
			break
		}
	}
	var out []int
	for c := from; c < len(w.q.classes); c++ {
		out = append(out, c)
	}
	if len(out) > 0 {
		w.arrange()
	}
	return out
}

// needs returns the groups over host names of which the class must be near a pod.
func (w *work) needs(c *class) (groups []int, self bool) {
	self = true
	for _, r := range w.q.profile(c).Host {
		if r.Form == topology.Near && r.Weight == 0 {
			groups = append(groups, r.Group)
			self = self && r.Self
		}
	}
	return groups, self
}

// clump ties all pods that must be near one another and near nobody else. As
// many as fit on one machine: the rest cannot run.
func (w *work) clump(c int) bool {
	groups, self := w.needs(&w.q.classes[c])
	if !self || slices.ContainsFunc(groups, w.isSomewhere) {
		return false
	}
	if slices.ContainsFunc(groups, func(g int) bool { return w.clumped[g] }) {
		return true // one machine is full of them: the others cannot run
	}
	var members []member
	for _, o := range w.order {
		other := &w.q.classes[o]
		if w.left[o] == 0 || other.members != nil {
			continue
		}
		if theirs, too := w.needs(other); too && slices.Equal(theirs, groups) && w.fitsAlone(other) {
			members = append(members, member{o, w.left[o]})
		}
	}
	for len(members) > 0 {
		if w.tie(members, 1, false) {
			w.q.classes[len(w.q.classes)-1].forced = true
			for _, g := range groups {
				w.clumped[g] = true
			}
			return true
		}
		members = smaller(members)
	}
	return true // none fits anywhere
}

// fitsAlone reports whether a machine or a node could take a pod of the class.
func (w *work) fitsAlone(c *class) bool {
	return len(c.stages) > 0 || w.anyRoom(c.Ask, w.nodesOf(c))
}

// nodesOf returns the nodes that pods of the class accept.
func (w *work) nodesOf(c *class) bitset.Set {
	if c.nodes == nil {
		return w.rooms.Hard[c.Sig]
	}
	return w.rooms.Hard[c.Sig].Both(c.nodes)
}

// smaller leaves out about a tenth of the pods of a bundle, but one at least.
func smaller(members []member) []member {
	total := 0
	for _, m := range members {
		total += m.n
	}
	out := slices.Clone(members)
	for drop := max(total/10, 1); drop > 0 && len(out) > 0; {
		last := &out[len(out)-1]
		n := min(drop, last.n)
		last.n -= n
		drop -= n
		if last.n == 0 {
			out = out[:len(out)-1]
		}
	}
	return out
}

// isSomewhere reports whether the group counts a pod on some node: then nobody
// may be the first.
func (w *work) isSomewhere(group int) bool {
	return w.isThere(w.rooms, group)
}

// isTaken reports whether pods of the group have a host, so that others must go there too.
func (w *work) isTaken(group int) bool { return w.clumped[group] || w.isSomewhere(group) }

// attach ties pods to those of the groups, which they must be near, or wish to be: to each about the same number.
func (w *work) attach(c int, groups []int, wish bool) {
	var hosts []int
	there := 0
	for _, o := range w.order {
		if o != c && w.left[o] > 0 && len(w.q.classes[o].stages) > 0 && w.counts(o, groups) {
			hosts = append(hosts, o)
			there += w.left[o]
		}
	}
	for _, o := range hosts {
		for share := (w.left[c] + max(there, 1) - 1) / max(there, 1); share > 0 && w.left[c] > 0 && w.left[o] > 0; {
			n := min(w.left[o], w.left[c]/share)
			if n == 0 {
				share = w.left[c]
				continue
			}
			if !w.tie([]member{{o, 1}, {c, share}}, n, wish) {
				share /= 2
			}
		}
		there -= w.left[o]
	}
}

// counts reports whether all the groups count the pods of the class, or some of a bundle.
func (w *work) counts(o int, groups []int) bool {
	c := &w.q.classes[o]
	if c.members == nil {
		// Who must be near others has no place itself yet.
		p := w.q.profile(c)
		return !p.Follows() && isInAll(p, groups)
	}
	return slices.ContainsFunc(c.members, func(m member) bool { return isInAll(w.q.profile(&w.q.classes[m.class]), groups) })
}

// isInAll reports whether all the groups, over host names, count pods of the profile.
func isInAll(p *topology.Profile, groups []int) bool {
	return !slices.ContainsFunc(groups, func(g int) bool { return !slices.Contains(p.HostIn, g) })
}

// tie makes a class of n bundles, and reports whether some machine takes one. If the pods only wish to be together, that
// must not be against another wish about hosts.
func (w *work) tie(members []member, n int, wish bool) bool {
	b, ok := w.join(members)
	if !ok || !w.shareHost(b.members, wish) {
		return false
	}
	b.base, b.all, b.wished = len(w.q.classes), n, wish
	b.stages = w.stagesOf(&b, members)
	b.hard, b.first = w.hardOf(members), -1
	if len(b.stages) == 0 && !w.anyRoom(b.Ask, b.nodes) {
		return false
	}
	for range n {
		for _, m := range members {
			c := &w.q.classes[m.class]
			from := len(c.Pods) - m.n*c.unit
			b.Pods = append(b.Pods, c.Pods[from:]...)
			c.Pods = c.Pods[:from]
		}
	}
	for _, m := range members {
		w.left[m.class] -= m.n * n
	}
	w.q.classes = append(w.q.classes, b)
	w.left, w.stage, w.light = append(w.left, n), append(w.stage, 0), append(w.light, 0)
	return true
}

// join returns what the members ask for together, as one class without pods. It reports false if they need a
// host port twice.
func (w *work) join(members []member) (b class, ok bool) {
	first := &w.q.classes[members[0].class]
	b.Class = podgroup.Class{Sig: first.Sig, Profile: topology.Plain, Priority: first.Priority}
	b.nodes = w.nodesOf(first)
	for _, m := range members {
		c := &w.q.classes[m.class]
		b.Amounts = b.Amounts.Add(c.Amounts.Times(int64(m.n)))
		b.Priority = max(b.Priority, c.Priority)
		for range m.n {
			if w.q.clashes(c, b.Lists) {
				return b, false
			}
			b.Ports, b.Lists = append(b.Ports, c.Ports...), append(b.Lists, c.Lists...)
		}
		b.nodes = b.nodes.Both(w.nodesOf(c))
		b.unit += m.n * c.unit
		if c.members == nil {
			b.members = append(b.members, m)
			continue
		}
		for _, inner := range c.members {
			b.members = append(b.members, member{inner.class, inner.n * m.n})
		}
	}
	b.Ask = w.q.Ask(b.Amounts)
	b.bulk = w.bulk(b.Ask)
	return b, true
}

// shareHost reports whether no rule about hosts keeps the members off one machine; with wish, no wish either.
func (w *work) shareHost(members []member, wish bool) bool {
	var host topology.Tally
	for _, m := range members {
		c := &w.q.classes[m.class]
		limits := topology.Limits{Together: true, Strict: wish, Light: w.light[m.class]}
		if host.Room(w.q.Book, w.q.profile(c), limits) < m.n {
			return false
		}
		w.tally(&host, c, m.n)
	}
	return true
}

// stagesOf returns the stages of a bundle: what all its members accept at each.
func (w *work) stagesOf(b *class, members []member) []int {
	most := 0
	for _, m := range members {
		most = max(most, len(w.q.classes[m.class].stages))
	}
	if slices.ContainsFunc(members, func(m member) bool { return len(w.q.classes[m.class].stages) == 0 }) {
		return nil // no machine can be bought for some of them
	}
	var out []int
	for i := range most {
		var both bitset.Set
		for _, m := range members {
			stages := w.q.classes[m.class].stages
			set := w.accepts.Sets[stages[min(i, len(stages)-1)]]
			if both == nil {
				both = set.Clone()
			} else {
				both.And(set)
			}
		}
		if n := w.accepts.Number(both); !slices.Contains(out, n) && w.accepts.AnyTakes(both, &b.Class) {
			out = append(out, n)
		}
	}
	return out
}

// hardOf returns the accept set of a bundle that no preference narrows.
func (w *work) hardOf(members []member) int {
	both := w.accepts.Sets[w.q.classes[members[0].class].hard].Clone()
	for _, m := range members[1:] {
		both.And(w.accepts.Sets[w.q.classes[m.class].hard])
	}
	return w.accepts.Number(both)
}

// anyRoom reports whether one of the nodes has so much room.
func (w *work) anyRoom(ask resources.Vector, nodes bitset.Set) bool {
	any := false
	nodes.Each(func(i int) { any = any || ask.Fits(w.rooms.Room[i]) })
	return any
}

// untie gives the pods of bundles that found no place back to their classes.
func (w *work) untie() {
	for i := len(w.q.classes) - 1; i >= 0; i-- {
		b := &w.q.classes[i]
		if b.members == nil || w.left[i] == 0 {
			continue
		}
		if b.forced {
			groups, _ := w.needs(&w.q.classes[b.members[0].class])
			for _, g := range groups {
				delete(w.clumped, g)
			}
		}
		from := len(b.Pods) - w.left[i]*b.unit
		for rest := b.Pods[from:]; len(rest) > 0; {
			for _, m := range b.members {
				c := &w.q.classes[m.class]
				c.Pods = append(slices.Clip(c.Pods), rest[:m.n*c.unit]...)
				w.left[m.class] += m.n
				rest = rest[m.n*c.unit:]
			}
		}
		b.Pods, w.left[i] = b.Pods[:from], 0
	}
}
