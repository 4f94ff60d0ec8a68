package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// gather ties pods together that would rather be on one machine, as bundle does with those that must. Where not all
// wishes of a pod can come true, the lightest are given up first. It returns the bundles, as new classes.
func (w *work) gather() []int {
	from := len(w.q.classes)
	for _, c := range slices.Clone(w.order) {
		class := &w.q.classes[c]
		if w.left[c] == 0 || class.members != nil || w.q.profile(class).Follows() || len(class.stages) == 0 {
			continue
		}
		rules := w.nearWishes(c)
		for n := len(rules); n > 0 && w.left[c] > 0; n-- {
			groups, self := groupsOf(rules[:n])
			if self {
				w.huddle(c, groups)
			} else {
				w.attach(c, groups, true)
			}
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

// nearWishes returns the wishes of the class to be on a machine with others, the heaviest first.
func (w *work) nearWishes(c int) []topology.Rule {
	var out []topology.Rule
	for _, r := range w.q.profile(&w.q.classes[c]).Host {
		if r.Form == topology.Near && r.Weight > w.light[c] {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b topology.Rule) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}

// groupsOf returns the groups of the rules, sorted, and whether all of them count the pods themselves.
func groupsOf(rules []topology.Rule) (groups []int, self bool) {
	self = true
	for _, r := range rules {
		groups = append(groups, r.Group)
		self = self && r.Self
	}
	slices.Sort(groups)
	return groups, self
}

// huddle ties the pods of all classes with these wishes to one another. If they do not fit on one machine, those of the class
// are tied in as few bundles as will do.
func (w *work) huddle(c int, groups []int) {
	var members []member
	for _, o := range w.order {
		other := &w.q.classes[o]
		if w.left[o] == 0 || other.members != nil || len(other.stages) == 0 || w.q.profile(other).Follows() {
			continue
		}
		if theirs, self := groupsOf(w.nearWishes(o)); self && slices.Equal(theirs, groups) {
			members = append(members, member{o, w.left[o]})
		}
	}
	if len(members) > 1 && w.tie(members, 1, true) {
		return
	}
	for n := w.left[c]; n > 1; n = min(n-max(n/10, 1), w.left[c]) {
		w.tie([]member{{c, n}}, w.left[c]/n, true)
	}
}

// relax gives up the wish to be together, and lighter ones, of pods that found no machine so. It returns their classes.
func (w *work) relax() []int {
	var out []int
	for c := range w.q.classes {
		b := &w.q.classes[c]
		if !b.wished || w.left[c] == 0 {
			continue
		}
		for _, m := range b.members {
			if rules := w.nearWishes(m.class); len(rules) > 0 {
				w.light[m.class] = rules[0].Weight
			}
			w.stage[m.class] = 0
			out = append(out, m.class)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
