package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// colocatePreferred bundles pods that prefer to share a node, as bundleRequired does with required
// affinity. If not all preferences of a pod can be satisfied, those of the lowest weight are
// dropped first. It returns the bundles, which are new classes.
func (bu bundler) colocatePreferred() []int {
	from := len(bu.queue.classes)
	for _, c := range slices.Clone(bu.queue.order) {
		class := &bu.queue.classes[c]
		if bu.queue.left[c] == 0 || class.members != nil || bu.queue.profile(class).HasRequiredHostAffinity() || len(class.stages) == 0 {
			continue
		}
		rules := bu.colocationPreferences(c)
		for n := len(rules); n > 0 && bu.queue.left[c] > 0; n-- {
			groups, self := groupsOf(rules[:n])
			if self {
				bu.groupSelfAffine(c, groups)
			} else {
				bu.bundleWithTargets(c, groups, true)
			}
		}
	}
	var out []int
	for c := from; c < len(bu.queue.classes); c++ {
		out = append(out, c)
	}
	if len(out) > 0 {
		bu.queue.sortClasses()
	}
	return out
}

// colocationPreferences returns the class's preferred host affinities, the highest weight first.
func (bu bundler) colocationPreferences(c int) []topology.Rule {
	var out []topology.Rule
	for _, r := range bu.queue.profile(&bu.queue.classes[c]).Host {
		if r.Kind == topology.Affinity && r.Weight > bu.queue.droppedWeight[c] {
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
func (bu bundler) groupSelfAffine(c int, groups []int) {
	var members []member
	for _, o := range bu.queue.order {
		other := &bu.queue.classes[o]
		if bu.queue.left[o] == 0 || other.members != nil || len(other.stages) == 0 || bu.queue.profile(other).HasRequiredHostAffinity() {
			continue
		}
		if theirs, self := groupsOf(bu.colocationPreferences(o)); self && slices.Equal(theirs, groups) {
			members = append(members, member{o, bu.queue.left[o]})
		}
	}
	if len(members) > 1 && bu.addBundles(members, 1, true) {
		return
	}
	for n := bu.queue.left[c]; n > 1; n = min(n-max(n/10, 1), bu.queue.left[c]) {
		bu.addBundles([]member{{c, n}}, bu.queue.left[c]/n, true)
	}
}

// relaxColocation drops the colocation preference, and lighter ones, of pods that could not be
// placed with it. It returns their classes.
func (bu bundler) relaxColocation() []int {
	var out []int
	for c := range bu.queue.classes {
		b := &bu.queue.classes[c]
		if !b.preferred || bu.queue.left[c] == 0 {
			continue
		}
		for _, m := range b.members {
			if rules := bu.colocationPreferences(m.class); len(rules) > 0 {
				bu.queue.droppedWeight[m.class] = rules[0].Weight
			}
			bu.queue.stage[m.class] = 0
			out = append(out, m.class)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
