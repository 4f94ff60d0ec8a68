package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// bundler combines pods that share a node, or prefer to, into bundles.
type bundler struct {
	problem      *problem
	queue        *queue
	rooms        *existing.Rooms
	topo         *existing.TopologyState
	hostAssigned map[int]bool // groups over host names whose pods are bundled for one node
}

// newBundler returns a bundler for the unplaced pods of the queue, which changes the queue and
// hostAssigned.
func newBundler(pr *problem, q *queue, rooms *existing.Rooms, topo *existing.TopologyState, hostAssigned map[int]bool) bundler {
	return bundler{problem: pr, queue: q, rooms: rooms, topo: topo, hostAssigned: hostAssigned}
}

// bundleRequired combines pods with required host affinity into bundles that are placed as one
// unit. Pods with affinity to themselves go into one bundle. Other pods are added, in equal shares,
// to the pods that they have affinity to. It returns the bundles, which are new classes.
func (bu bundler) bundleRequired() []int {
	from := len(bu.queue.classes)
	for {
		made := len(bu.queue.classes)
		for _, c := range slices.Clone(bu.queue.order) {
			if bu.queue.left[c] == 0 || !bu.queue.profile(&bu.queue.classes[c]).HasRequiredHostAffinity() || bu.daemonPodsSuffice(c) {
				continue
			}
			if groups, _ := bu.queue.profile(&bu.queue.classes[c]).RequiredHostGroups(); !bu.bundleSelfAffine(c) {
				bu.bundleWithTargets(c, groups, false)
			}
		}
		// A pod with affinity to a pod that was just bundled can join it in the next round.
		if len(bu.queue.classes) == made {
			break
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

// bundleSelfAffine puts all pods that have required host affinity to one another, and to no others,
// into one bundle. The bundle has as many pods as fit on one node; the others cannot run. It
// reports false if the class has other affinities or its group already has a node.
func (bu bundler) bundleSelfAffine(c int) bool {
	groups, self := bu.queue.profile(&bu.queue.classes[c]).RequiredHostGroups()
	if !self || slices.ContainsFunc(groups, func(g int) bool { return bu.topo.HasPod(bu.rooms, g) }) {
		return false
	}
	if slices.ContainsFunc(groups, func(g int) bool { return bu.hostAssigned[g] }) {
		return true // their node is full: the others cannot run
	}
	var members []member
	for _, o := range bu.queue.order {
		other := &bu.queue.classes[o]
		if bu.queue.left[o] == 0 || other.members != nil {
			continue
		}
		if theirs, too := bu.queue.profile(other).RequiredHostGroups(); too && slices.Equal(theirs, groups) && bu.fitsAlone(other) {
			members = append(members, member{o, bu.queue.left[o]})
		}
	}
	for len(members) > 0 {
		if bu.addBundles(members, 1, false) {
			bu.queue.classes[len(bu.queue.classes)-1].oneNodeOnly = true
			for _, g := range groups {
				bu.hostAssigned[g] = true
			}
			return true
		}
		members = withoutTenth(members)
	}
	return true // no pod fits anywhere
}

// fitsAlone reports whether an existing or a new node could take a pod of the class.
func (bu bundler) fitsAlone(c *class) bool {
	return len(c.stages) > 0 || bu.anyNodeFits(c.Ask, c.acceptedNodes(bu.rooms))
}

// anyNodeFits reports whether one of the nodes has room for the request.
func (bu bundler) anyNodeFits(ask resources.Vector, nodes bitset.Set) bool {
	any := false
	nodes.Each(func(i int) { any = any || ask.Fits(bu.rooms.Room[i]) })
	return any
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

// bundleWithTargets combines pods with those that they have host affinity to, required or
// preferred: each target gets about the same number.
func (bu bundler) bundleWithTargets(c int, groups []int, preferred bool) {
	var targets []int
	remaining := 0
	for _, o := range bu.queue.order {
		if o != c && bu.queue.left[o] > 0 && len(bu.queue.classes[o].stages) > 0 && bu.isTarget(o, groups) {
			targets = append(targets, o)
			remaining += bu.queue.left[o]
		}
	}
	for _, o := range targets {
		for share := (bu.queue.left[c] + max(remaining, 1) - 1) / max(remaining, 1); share > 0 && bu.queue.left[c] > 0 && bu.queue.left[o] > 0; {
			n := min(bu.queue.left[o], bu.queue.left[c]/share)
			if n == 0 {
				share = bu.queue.left[c]
				continue
			}
			if !bu.addBundles([]member{{o, 1}, {c, share}}, n, preferred) {
				share /= 2
			}
		}
		remaining -= bu.queue.left[o]
	}
}

// isTarget reports whether all the groups select the pods of the class, or those of one member of a
// bundle.
func (bu bundler) isTarget(o int, groups []int) bool {
	c := &bu.queue.classes[o]
	if c.members == nil {
		// A pod that itself needs a target is not placed yet.
		p := bu.queue.profile(c)
		return !p.HasRequiredHostAffinity() && isInAll(p, groups)
	}
	return slices.ContainsFunc(c.members, func(m member) bool { return isInAll(bu.queue.profile(&bu.queue.classes[m.class]), groups) })
}

// isInAll reports whether all the groups, over host names, count pods of the profile.
func isInAll(p *topology.Profile, groups []int) bool {
	return !slices.ContainsFunc(groups, func(g int) bool { return !slices.Contains(p.HostIn, g) })
}

// addBundles adds a class of n bundles with these members, and reports whether some node can take
// one. With preferred, the bundle must violate no preference about hosts either.
func (bu bundler) addBundles(members []member, n int, preferred bool) bool {
	b, ok := bu.mergeMembers(members)
	if !ok || !bu.canShareNode(b.members, preferred) {
		return false
	}
	b.base, b.initialUnits, b.preferred = len(bu.queue.classes), n, preferred
	b.stages = bu.bundleStages(&b, members)
	b.hardSet, b.firstStage = bu.bundleHardSet(members), -1
	if len(b.stages) == 0 && !bu.anyNodeFits(b.Ask, b.nodes) {
		return false
	}
	for range n {
		for _, m := range members {
			c := &bu.queue.classes[m.class]
			from := len(c.Pods) - m.n*c.podsPerUnit
			b.Pods = append(b.Pods, c.Pods[from:]...)
			c.Pods = c.Pods[:from]
		}
	}
	for _, m := range members {
		bu.queue.left[m.class] -= m.n * n
	}
	bu.queue.classes = append(bu.queue.classes, b)
	bu.queue.left, bu.queue.stage, bu.queue.droppedWeight = append(bu.queue.left, n), append(bu.queue.stage, 0), append(bu.queue.droppedWeight, 0)
	return true
}

// mergeMembers returns the requests and rules of all members together, as a class without pods. It
// reports false if the members need the same host port twice.
func (bu bundler) mergeMembers(members []member) (b class, ok bool) {
	first := &bu.queue.classes[members[0].class]
	b.Class = podgroup.Class{Sig: first.Sig, Profile: topology.Plain, Priority: first.Priority}
	b.nodes = first.acceptedNodes(bu.rooms)
	for _, m := range members {
		c := &bu.queue.classes[m.class]
		b.Amounts = b.Amounts.Add(c.Amounts.Times(int64(m.n)))
		b.Priority = max(b.Priority, c.Priority)
		for range m.n {
			if bu.queue.hasPortConflict(c, b.Lists) {
				return b, false
			}
			b.Ports, b.Lists = append(b.Ports, c.Ports...), append(b.Lists, c.Lists...)
		}
		b.nodes = b.nodes.Both(c.acceptedNodes(bu.rooms))
		b.podsPerUnit += m.n * c.podsPerUnit
		if c.members == nil {
			b.members = append(b.members, m)
			continue
		}
		for _, inner := range c.members {
			b.members = append(b.members, member{inner.class, inner.n * m.n})
		}
	}
	b.Ask = bu.queue.pods.Ask(b.Amounts)
	b.bulk = bu.problem.bulkOf(b.Ask)
	return b, true
}

// canShareNode reports whether the host rules allow the members on one node. With preferred,
// preferences count as rules.
func (bu bundler) canShareNode(members []member, preferred bool) bool {
	var host topology.HostCounts
	for _, m := range members {
		c := &bu.queue.classes[m.class]
		limits := topology.Limits{Together: true, Strict: preferred, DroppedWeight: bu.queue.droppedWeight[m.class]}
		if host.Room(bu.queue.pods.Topology, bu.queue.profile(c), limits) < m.n {
			return false
		}
		bu.queue.addToTally(&host, c, m.n)
	}
	return true
}

// bundleStages returns the stages of a bundle: for each stage, the intersection of its members'
// accept sets.
func (bu bundler) bundleStages(b *class, members []member) []int {
	most := 0
	for _, m := range members {
		most = max(most, len(bu.queue.classes[m.class].stages))
	}
	if slices.ContainsFunc(members, func(m member) bool { return len(bu.queue.classes[m.class].stages) == 0 }) {
		return nil // some member accepts no offering
	}
	var out []int
	for i := range most {
		var both bitset.Set
		for _, m := range members {
			stages := bu.queue.classes[m.class].stages
			set := bu.problem.accepts.Sets[stages[min(i, len(stages)-1)]]
			if both == nil {
				both = set.Clone()
			} else {
				both.And(set)
			}
		}
		if n := bu.problem.accepts.Number(both); !slices.Contains(out, n) && bu.problem.accepts.AnyTakes(both, &b.Class) {
			out = append(out, n)
		}
	}
	return out
}

// bundleHardSet returns the accept set of a bundle without preferences.
func (bu bundler) bundleHardSet(members []member) int {
	both := bu.problem.accepts.Sets[bu.queue.classes[members[0].class].hardSet].Clone()
	for _, m := range members[1:] {
		both.And(bu.problem.accepts.Sets[bu.queue.classes[m.class].hardSet])
	}
	return bu.problem.accepts.Number(both)
}

// unbundle returns the pods of unplaced bundles to their classes.
func (bu bundler) unbundle() {
	for i := len(bu.queue.classes) - 1; i >= 0; i-- {
		b := &bu.queue.classes[i]
		if b.members == nil || bu.queue.left[i] == 0 {
			continue
		}
		if b.oneNodeOnly {
			groups, _ := bu.queue.profile(&bu.queue.classes[b.members[0].class]).RequiredHostGroups()
			for _, g := range groups {
				delete(bu.hostAssigned, g)
			}
		}
		from := len(b.Pods) - bu.queue.left[i]*b.podsPerUnit
		for rest := b.Pods[from:]; len(rest) > 0; {
			for _, m := range b.members {
				c := &bu.queue.classes[m.class]
				c.Pods = append(slices.Clip(c.Pods), rest[:m.n*c.podsPerUnit]...)
				bu.queue.left[m.class] += m.n
				rest = rest[m.n*c.podsPerUnit:]
			}
		}
		b.Pods, bu.queue.left[i] = b.Pods[:from], 0
	}
}

// daemonPodsSuffice reports whether some accepted offering has DaemonSet pods for all required host
// affinities of the class. Then it needs no bundle.
func (bu bundler) daemonPodsSuffice(c int) bool {
	if bu.queue.daemonPods == nil {
		return false
	}
	groups, _ := bu.queue.profile(&bu.queue.classes[c]).RequiredHostGroups()
	return slices.ContainsFunc(bu.queue.classes[c].stages, func(stage int) bool {
		some := false
		bu.problem.accepts.Sets[stage].Each(func(o int) { some = some || bu.queue.daemonPods.HasAll(groups, o) })
		return some
	})
}
