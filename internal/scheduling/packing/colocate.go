package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// colocatePreferred bundles pods that prefer to share a node, as bundleRequired does with required
// affinity. If not all preferences of a pod can be satisfied, those of the lowest weight are
// dropped first. It returns the bundles, which are new classes.
func (pl *planner) colocatePreferred() []int {
	from := len(pl.q.classes)
	for _, c := range slices.Clone(pl.order) {
		class := &pl.q.classes[c]
		if pl.left[c] == 0 || class.members != nil || pl.q.profile(class).Follows() || len(class.stages) == 0 {
			continue
		}
		rules := pl.colocationPreferences(c)
		for n := len(rules); n > 0 && pl.left[c] > 0; n-- {
			groups, self := groupsOf(rules[:n])
			if self {
				pl.groupSelfAffine(c, groups)
			} else {
				pl.bundleWithTargets(c, groups, true)
			}
		}
	}
	var out []int
	for c := from; c < len(pl.q.classes); c++ {
		out = append(out, c)
	}
	if len(out) > 0 {
		pl.sortClasses()
	}
	return out
}

// colocationPreferences returns the class's preferred host affinities, the highest weight first.
func (pl *planner) colocationPreferences(c int) []topology.Rule {
	var out []topology.Rule
	for _, r := range pl.q.profile(&pl.q.classes[c]).Host {
		if r.Form == topology.Near && r.Weight > pl.droppedWeight[c] {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b topology.Rule) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}

// groupsOf returns the groups of the rules, sorted, and whether all of them select the pods
// themselves.
func groupsOf(rules []topology.Rule) (groups []int, self bool) {
	self = true
	for _, r := range rules {
		groups = append(groups, r.Group)
		self = self && r.Self
	}
	slices.Sort(groups)
	return groups, self
}

// groupSelfAffine bundles the pods of all classes with the same preferences for one another. If
// they do not fit on one node, the pods of the class are put into as few bundles as possible.
func (pl *planner) groupSelfAffine(c int, groups []int) {
	var members []member
	for _, o := range pl.order {
		other := &pl.q.classes[o]
		if pl.left[o] == 0 || other.members != nil || len(other.stages) == 0 || pl.q.profile(other).Follows() {
			continue
		}
		if theirs, self := groupsOf(pl.colocationPreferences(o)); self && slices.Equal(theirs, groups) {
			members = append(members, member{o, pl.left[o]})
		}
	}
	if len(members) > 1 && pl.addBundles(members, 1, true) {
		return
	}
	for n := pl.left[c]; n > 1; n = min(n-max(n/10, 1), pl.left[c]) {
		pl.addBundles([]member{{c, n}}, pl.left[c]/n, true)
	}
}

// relaxColocation drops the colocation preference, and lighter ones, of pods that could not be
// placed with it. It returns their classes.
func (pl *planner) relaxColocation() []int {
	var out []int
	for c := range pl.q.classes {
		b := &pl.q.classes[c]
		if !b.preferred || pl.left[c] == 0 {
			continue
		}
		for _, m := range b.members {
			if rules := pl.colocationPreferences(m.class); len(rules) > 0 {
				pl.droppedWeight[m.class] = rules[0].Weight
			}
			pl.stage[m.class] = 0
			out = append(out, m.class)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
