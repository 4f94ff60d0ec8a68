package bundle

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// ColocatePreferred bundles pods that prefer to share a node, as BundleRequired does for required affinity. If pods get
// no bundle that satisfies all their preferred host affinities, ColocatePreferred tries again without the affinity of
// the lowest weight, and so on. It returns the numbers of the bundles, which are new classes.
func (bu Bundler) ColocatePreferred() []int {
	firstNew := len(bu.queue.Classes)
	for _, c := range slices.Clone(bu.queue.Order) {
		class := &bu.queue.Classes[c]
		if bu.queue.Left[c] == 0 || class.Members != nil || bu.queue.Profile(class).HasRequiredHostAffinity() || len(class.Stages) == 0 {
			continue // nothing is left, it is a bundle, BundleRequired handles it, or it fits no offering
		}
		rules := bu.colocationPreferences(c)
		for n := len(rules); n > 0 && bu.queue.Left[c] > 0; n-- {
			groups, self := groupsOf(rules[:n])
			if self {
				bu.bundlePreferredSelfAffine(c, groups)
			} else {
				bu.bundleWithTargets(c, groups, true)
			}
		}
	}
	var out []int
	for c := firstNew; c < len(bu.queue.Classes); c++ {
		out = append(out, c)
	}
	if len(out) > 0 {
		bu.queue.SortClasses()
	}
	return out
}

// colocationPreferences returns the class's preferred host affinities, highest weight first.
func (bu Bundler) colocationPreferences(c int) []topology.Rule {
	var out []topology.Rule
	for _, r := range bu.queue.Profile(&bu.queue.Classes[c]).Host {
		if r.Kind == topology.Affinity && r.Weight > bu.queue.DroppedWeight[c] {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b topology.Rule) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}

// groupsOf returns the groups of the rules, sorted, and whether every rule also selects the pods that have it.
func groupsOf(rules []topology.Rule) (groups []int, self bool) {
	self = true
	for _, r := range rules {
		groups = append(groups, r.Group)
		self = self && r.Self
	}
	slices.Sort(groups)
	return groups, self
}

// bundlePreferredSelfAffine bundles the pods of all classes that have the same preferred host affinities to one
// another. If they do not fit on one node, it bundles only the pods of class c: all of them or, until they fit, a tenth
// fewer.
func (bu Bundler) bundlePreferredSelfAffine(c int, groups []int) {
	var members []pending.Member
	for _, o := range bu.queue.Order {
		other := &bu.queue.Classes[o]
		if bu.queue.Left[o] == 0 || other.Members != nil || len(other.Stages) == 0 || bu.queue.Profile(other).HasRequiredHostAffinity() {
			continue
		}
		if otherGroups, self := groupsOf(bu.colocationPreferences(o)); self && slices.Equal(otherGroups, groups) {
			members = append(members, pending.Member{Class: o, N: bu.queue.Left[o]})
		}
	}
	if len(members) > 1 && bu.addBundles(members, 1, true) {
		return
	}
	for n := bu.queue.Left[c]; n > 1; n = min(n-max(n/10, 1), bu.queue.Left[c]) {
		bu.addBundles([]pending.Member{{Class: c, N: n}}, bu.queue.Left[c]/n, true)
	}
}

// RelaxColocation handles pods that could not be placed in their bundle: it drops their preferences about hosts, up to
// the highest weight of their preferred host affinities, and returns their classes. The pods stay in their bundle until
// Unbundle is called.
func (bu Bundler) RelaxColocation() []int {
	var out []int
	for c := range bu.queue.Classes {
		b := &bu.queue.Classes[c]
		if !b.Preferred || bu.queue.Left[c] == 0 {
			continue
		}
		for _, m := range b.Members {
			if rules := bu.colocationPreferences(m.Class); len(rules) > 0 {
				bu.queue.DroppedWeight[m.Class] = rules[0].Weight
			}
			bu.queue.Stage[m.Class] = 0
			out = append(out, m.Class)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
