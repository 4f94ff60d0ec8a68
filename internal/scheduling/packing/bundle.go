package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// bundleRequired combines pods with required host affinity into bundles that are placed as one
// unit. Pods with affinity to themselves go into one bundle. Other pods are added, in equal shares,
// to the pods that they have affinity to. It returns the bundles, which are new classes.
func (pl *planner) bundleRequired() []int {
	from := len(pl.q.classes)
	for {
		made := len(pl.q.classes)
		for _, c := range slices.Clone(pl.order) {
			if pl.left[c] == 0 || !pl.q.profile(&pl.q.classes[c]).Follows() || pl.daemonPodsSuffice(c) {
				continue
			}
			if groups, _ := pl.requiredHostGroups(&pl.q.classes[c]); !pl.bundleSelfAffine(c) {
				pl.bundleWithTargets(c, groups, false)
			}
		}
		// A pod with affinity to a pod that was just bundled can join it in the next round.
		if len(pl.q.classes) == made {
			break
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

// requiredHostGroups returns the groups of the class's required host affinities, and whether all of
// them select the class itself.
func (pl *planner) requiredHostGroups(c *class) (groups []int, self bool) {
	self = true
	for _, r := range pl.q.profile(c).Host {
		if r.Form == topology.Near && r.Weight == 0 {
			groups = append(groups, r.Group)
			self = self && r.Self
		}
	}
	return groups, self
}

// bundleSelfAffine puts all pods that have required host affinity to one another, and to no others,
// into one bundle. The bundle has as many pods as fit on one node; the others cannot run. It
// reports false if the class has other affinities or its group already has a node.
func (pl *planner) bundleSelfAffine(c int) bool {
	groups, self := pl.requiredHostGroups(&pl.q.classes[c])
	if !self || slices.ContainsFunc(groups, pl.hasPod) {
		return false
	}
	if slices.ContainsFunc(groups, func(g int) bool { return pl.hostAssigned[g] }) {
		return true // their node is full: the others cannot run
	}
	var members []member
	for _, o := range pl.order {
		other := &pl.q.classes[o]
		if pl.left[o] == 0 || other.members != nil {
			continue
		}
		if theirs, too := pl.requiredHostGroups(other); too && slices.Equal(theirs, groups) && pl.fitsAlone(other) {
			members = append(members, member{o, pl.left[o]})
		}
	}
	for len(members) > 0 {
		if pl.addBundles(members, 1, false) {
			pl.q.classes[len(pl.q.classes)-1].oneNodeOnly = true
			for _, g := range groups {
				pl.hostAssigned[g] = true
			}
			return true
		}
		members = withoutTenth(members)
	}
	return true // no pod fits anywhere
}

// fitsAlone reports whether an existing or a new node could take a pod of the class.
func (pl *planner) fitsAlone(c *class) bool {
	return len(c.stages) > 0 || pl.anyNodeFits(c.Ask, pl.acceptedNodes(c))
}

// acceptedNodes returns the existing nodes that pods of the class accept.
func (pl *planner) acceptedNodes(c *class) bitset.Set {
	if c.nodes == nil {
		return pl.rooms.Hard[c.Sig]
	}
	return pl.rooms.Hard[c.Sig].Both(c.nodes)
}

// withoutTenth removes about a tenth of the pods from a bundle, at least one.
func withoutTenth(members []member) []member {
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

// hasPod reports whether the group counts a pod on an existing node. Then no unplaced pod may be
// the group's first.
func (pl *planner) hasPod(group int) bool {
	return pl.hasPodOn(pl.rooms, group)
}

// isHostFixed reports whether pods of the group have a host already, so that others must use it
// too.
func (pl *planner) isHostFixed(group int) bool { return pl.hostAssigned[group] || pl.hasPod(group) }

// bundleWithTargets combines pods with those that they have host affinity to, required or
// preferred: each target gets about the same number.
func (pl *planner) bundleWithTargets(c int, groups []int, preferred bool) {
	var targets []int
	remaining := 0
	for _, o := range pl.order {
		if o != c && pl.left[o] > 0 && len(pl.q.classes[o].stages) > 0 && pl.isTarget(o, groups) {
			targets = append(targets, o)
			remaining += pl.left[o]
		}
	}
	for _, o := range targets {
		for share := (pl.left[c] + max(remaining, 1) - 1) / max(remaining, 1); share > 0 && pl.left[c] > 0 && pl.left[o] > 0; {
			n := min(pl.left[o], pl.left[c]/share)
			if n == 0 {
				share = pl.left[c]
				continue
			}
			if !pl.addBundles([]member{{o, 1}, {c, share}}, n, preferred) {
				share /= 2
			}
		}
		remaining -= pl.left[o]
	}
}

// isTarget reports whether all the groups select the pods of the class, or those of one member of a
// bundle.
func (pl *planner) isTarget(o int, groups []int) bool {
	c := &pl.q.classes[o]
	if c.members == nil {
		// A pod that itself needs a target is not placed yet.
		p := pl.q.profile(c)
		return !p.Follows() && isInAll(p, groups)
	}
	return slices.ContainsFunc(c.members, func(m member) bool { return isInAll(pl.q.profile(&pl.q.classes[m.class]), groups) })
}

// isInAll reports whether all the groups, over host names, count pods of the profile.
func isInAll(p *topology.Profile, groups []int) bool {
	return !slices.ContainsFunc(groups, func(g int) bool { return !slices.Contains(p.HostIn, g) })
}

// addBundles adds a class of n bundles with these members, and reports whether some node can take
// one. With preferred, the bundle must violate no preference about hosts either.
func (pl *planner) addBundles(members []member, n int, preferred bool) bool {
	b, ok := pl.mergeMembers(members)
	if !ok || !pl.canShareNode(b.members, preferred) {
		return false
	}
	b.base, b.initialUnits, b.preferred = len(pl.q.classes), n, preferred
	b.stages = pl.bundleStages(&b, members)
	b.hardSet, b.firstStage = pl.bundleHardSet(members), -1
	if len(b.stages) == 0 && !pl.anyNodeFits(b.Ask, b.nodes) {
		return false
	}
	for range n {
		for _, m := range members {
			c := &pl.q.classes[m.class]
			from := len(c.Pods) - m.n*c.podsPerUnit
			b.Pods = append(b.Pods, c.Pods[from:]...)
			c.Pods = c.Pods[:from]
		}
	}
	for _, m := range members {
		pl.left[m.class] -= m.n * n
	}
	pl.q.classes = append(pl.q.classes, b)
	pl.left, pl.stage, pl.droppedWeight = append(pl.left, n), append(pl.stage, 0), append(pl.droppedWeight, 0)
	return true
}

// mergeMembers returns the requests and rules of all members together, as a class without pods. It
// reports false if the members need the same host port twice.
func (pl *planner) mergeMembers(members []member) (b class, ok bool) {
	first := &pl.q.classes[members[0].class]
	b.Class = podgroup.Class{Sig: first.Sig, Profile: topology.Plain, Priority: first.Priority}
	b.nodes = pl.acceptedNodes(first)
	for _, m := range members {
		c := &pl.q.classes[m.class]
		b.Amounts = b.Amounts.Add(c.Amounts.Times(int64(m.n)))
		b.Priority = max(b.Priority, c.Priority)
		for range m.n {
			if pl.q.hasPortConflict(c, b.Lists) {
				return b, false
			}
			b.Ports, b.Lists = append(b.Ports, c.Ports...), append(b.Lists, c.Lists...)
		}
		b.nodes = b.nodes.Both(pl.acceptedNodes(c))
		b.podsPerUnit += m.n * c.podsPerUnit
		if c.members == nil {
			b.members = append(b.members, m)
			continue
		}
		for _, inner := range c.members {
			b.members = append(b.members, member{inner.class, inner.n * m.n})
		}
	}
	b.Ask = pl.q.Ask(b.Amounts)
	b.bulk = pl.bulkOf(b.Ask)
	return b, true
}

// canShareNode reports whether the host rules allow the members on one node. With preferred,
// preferences count as rules.
func (pl *planner) canShareNode(members []member, preferred bool) bool {
	var host topology.Tally
	for _, m := range members {
		c := &pl.q.classes[m.class]
		limits := topology.Limits{Together: true, Strict: preferred, Light: pl.droppedWeight[m.class]}
		if host.Room(pl.q.Book, pl.q.profile(c), limits) < m.n {
			return false
		}
		pl.addToTally(&host, c, m.n)
	}
	return true
}

// bundleStages returns the stages of a bundle: for each stage, the intersection of its members'
// accept sets.
func (pl *planner) bundleStages(b *class, members []member) []int {
	most := 0
	for _, m := range members {
		most = max(most, len(pl.q.classes[m.class].stages))
	}
	if slices.ContainsFunc(members, func(m member) bool { return len(pl.q.classes[m.class].stages) == 0 }) {
		return nil // some member accepts no offering
	}
	var out []int
	for i := range most {
		var both bitset.Set
		for _, m := range members {
			stages := pl.q.classes[m.class].stages
			set := pl.accepts.Sets[stages[min(i, len(stages)-1)]]
			if both == nil {
				both = set.Clone()
			} else {
				both.And(set)
			}
		}
		if n := pl.accepts.Number(both); !slices.Contains(out, n) && pl.accepts.AnyTakes(both, &b.Class) {
			out = append(out, n)
		}
	}
	return out
}

// bundleHardSet returns the accept set of a bundle without preferences.
func (pl *planner) bundleHardSet(members []member) int {
	both := pl.accepts.Sets[pl.q.classes[members[0].class].hardSet].Clone()
	for _, m := range members[1:] {
		both.And(pl.accepts.Sets[pl.q.classes[m.class].hardSet])
	}
	return pl.accepts.Number(both)
}

// anyNodeFits reports whether one of the nodes has room for the request.
func (pl *planner) anyNodeFits(ask resources.Vector, nodes bitset.Set) bool {
	any := false
	nodes.Each(func(i int) { any = any || ask.Fits(pl.rooms.Room[i]) })
	return any
}

// unbundle returns the pods of unplaced bundles to their classes.
func (pl *planner) unbundle() {
	for i := len(pl.q.classes) - 1; i >= 0; i-- {
		b := &pl.q.classes[i]
		if b.members == nil || pl.left[i] == 0 {
			continue
		}
		if b.oneNodeOnly {
			groups, _ := pl.requiredHostGroups(&pl.q.classes[b.members[0].class])
			for _, g := range groups {
				delete(pl.hostAssigned, g)
			}
		}
		from := len(b.Pods) - pl.left[i]*b.podsPerUnit
		for rest := b.Pods[from:]; len(rest) > 0; {
			for _, m := range b.members {
				c := &pl.q.classes[m.class]
				c.Pods = append(slices.Clip(c.Pods), rest[:m.n*c.podsPerUnit]...)
				pl.left[m.class] += m.n
				rest = rest[m.n*c.podsPerUnit:]
			}
		}
		b.Pods, pl.left[i] = b.Pods[:from], 0
	}
}
