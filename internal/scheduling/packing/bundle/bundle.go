package bundle

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// Bundler combines pods that must share a node, or prefer to, into bundles.
type Bundler struct {
	problem      *pending.Problem
	queue        *pending.Queue
	rooms        *existing.Rooms
	topo         *existing.TopologyState
	hostAssigned map[int]bool // groups over host names whose pods are bundled for one node
}

// New returns a bundler for the unplaced pods of the queue. The bundler changes the queue and hostAssigned.
func New(pr *pending.Problem, q *pending.Queue, rooms *existing.Rooms, topo *existing.TopologyState, hostAssigned map[int]bool) Bundler {
	return Bundler{problem: pr, queue: q, rooms: rooms, topo: topo, hostAssigned: hostAssigned}
}

// BundleRequired combines pods with required host affinity into bundles that are placed as one unit. Pods with affinity
// only to one another get one bundle. Other pods are added, in equal shares, to the pods that they have affinity to.
// BundleRequired returns the numbers of the bundles, which are new classes.
func (bu Bundler) BundleRequired() []int {
	from := len(bu.queue.Classes)
	for {
		before := len(bu.queue.Classes)
		for _, c := range slices.Clone(bu.queue.Order) {
			if bu.queue.Left[c] == 0 || !bu.queue.Profile(&bu.queue.Classes[c]).HasRequiredHostAffinity() || bu.daemonPodsSuffice(c) {
				continue
			}
			if groups, _ := bu.queue.Profile(&bu.queue.Classes[c]).RequiredHostGroups(); !bu.bundleSelfAffine(c) {
				bu.bundleWithTargets(c, groups, false)
			}
		}
		// A pod with affinity to a pod that was just bundled can join the bundle of that pod in the next round.
		if len(bu.queue.Classes) == before {
			break
		}
	}
	var out []int
	for c := from; c < len(bu.queue.Classes); c++ {
		out = append(out, c)
	}
	if len(out) > 0 {
		bu.queue.SortClasses()
	}
	return out
}

// bundleSelfAffine puts pods of the class, and of classes with the same affinity, into one bundle, if they have
// required host affinity only to one another. The bundle has about as many pods as fit on one node: withoutTenth is
// repeated until the pods fit. The other pods cannot be placed. bundleSelfAffine returns false, and makes no bundle, in
// two cases: the class also has affinity to other pods, or an existing node has a pod of the affinity's groups.
func (bu Bundler) bundleSelfAffine(c int) bool {
	groups, self := bu.queue.Profile(&bu.queue.Classes[c]).RequiredHostGroups()
	if !self || slices.ContainsFunc(groups, func(g int) bool { return bu.topo.HasPod(bu.rooms, g) }) {
		return false
	}
	if slices.ContainsFunc(groups, func(g int) bool { return bu.hostAssigned[g] }) {
		return true // the node of these groups is full, so the other pods cannot be placed
	}
	var members []pending.Member
	for _, o := range bu.queue.Order {
		other := &bu.queue.Classes[o]
		if bu.queue.Left[o] == 0 || other.Members != nil {
			continue
		}
		otherGroups, otherSelf := bu.queue.Profile(other).RequiredHostGroups()
		if otherSelf && slices.Equal(otherGroups, groups) && bu.fitsAlone(other) {
			members = append(members, pending.Member{Class: o, N: bu.queue.Left[o]})
		}
	}
	for len(members) > 0 {
		if bu.addBundles(members, 1, false) {
			bu.queue.Classes[len(bu.queue.Classes)-1].OneNodeOnly = true
			for _, g := range groups {
				bu.hostAssigned[g] = true
			}
			return true
		}
		members = withoutTenth(members)
	}
	return true // no pod fits anywhere
}

// fitsAlone reports whether the class accepts an offering, or whether an existing node has room for its pods.
func (bu Bundler) fitsAlone(c *pending.Class) bool {
	return len(c.Stages) > 0 || bu.anyNodeFits(c.Ask, c.AcceptedNodes(bu.rooms))
}

func (bu Bundler) anyNodeFits(ask resources.Vector, nodes bitset.Set) bool {
	fits := false
	nodes.Each(func(i int) { fits = fits || ask.Fits(bu.rooms.Room[i]) })
	return fits
}

// withoutTenth returns the members without about a tenth of the pods, at least one pod. The last members lose pods
// first.
func withoutTenth(members []pending.Member) []pending.Member {
	total := 0
	for _, m := range members {
		total += m.N
	}
	out := slices.Clone(members)
	for drop := max(total/10, 1); drop > 0 && len(out) > 0; {
		last := &out[len(out)-1]
		n := min(drop, last.N)
		last.N -= n
		drop -= n
		if last.N == 0 {
			out = out[:len(out)-1]
		}
	}
	return out
}

// bundleWithTargets combines unplaced pods of the class with their targets: the pods that all the groups of their host
// affinity select. Each target should get about the same number of pods. preferred is whether the affinity is
// preferred, not required.
func (bu Bundler) bundleWithTargets(c int, groups []int, preferred bool) {
	var targets []int // classes
	remaining := 0    // units of the targets
	for _, o := range bu.queue.Order {
		if o != c && bu.queue.Left[o] > 0 && len(bu.queue.Classes[o].Stages) > 0 && bu.isTarget(o, groups) {
			targets = append(targets, o)
			remaining += bu.queue.Left[o]
		}
	}
	for _, o := range targets {
		for share := (bu.queue.Left[c] + max(remaining, 1) - 1) / max(remaining, 1); share > 0 && bu.queue.Left[c] > 0 && bu.queue.Left[o] > 0; {
			n := min(bu.queue.Left[o], bu.queue.Left[c]/share)
			if n == 0 {
				share = bu.queue.Left[c]
				continue
			}
			if !bu.addBundles([]pending.Member{{Class: o, N: 1}, {Class: c, N: share}}, n, preferred) {
				share /= 2
			}
		}
		remaining -= bu.queue.Left[o]
	}
}

// isTarget reports whether all the groups select the pods of class o. If o is a bundle, it is enough that they select
// the pods of one member.
func (bu Bundler) isTarget(o int, groups []int) bool {
	c := &bu.queue.Classes[o]
	if c.Members == nil {
		// Pods that need a target themselves are no target: they are not placed yet.
		p := bu.queue.Profile(c)
		return !p.HasRequiredHostAffinity() && isInAll(p, groups)
	}
	return slices.ContainsFunc(c.Members, func(m pending.Member) bool { return isInAll(bu.queue.Profile(&bu.queue.Classes[m.Class]), groups) })
}

// isInAll reports whether all the groups over host names select pods of the profile.
func isInAll(p *topology.Profile, groups []int) bool {
	return !slices.ContainsFunc(groups, func(g int) bool { return !slices.Contains(p.HostIn, g) })
}

// addBundles adds a class of n bundles with these members, and reports whether it did. It changes nothing if no node
// can take one bundle: because of host ports, host rules, or room. With preferred, the bundle must not violate
// preferences about hosts.
func (bu Bundler) addBundles(members []pending.Member, n int, preferred bool) bool {
	b, ok := bu.mergeMembers(members)
	if !ok || !bu.canShareNode(b.Members, preferred) {
		return false
	}
	b.WholeClass, b.InitialUnits, b.Preferred = len(bu.queue.Classes), n, preferred
	b.Stages = bu.bundleStages(&b, members)
	b.HardSet, b.FirstStage = bu.bundleHardSet(members), -1
	if len(b.Stages) == 0 && !bu.anyNodeFits(b.Ask, b.Nodes) {
		return false
	}
	for range n {
		for _, m := range members {
			c := &bu.queue.Classes[m.Class]
			from := len(c.Pods) - m.N*c.PodsPerUnit
			b.Pods = append(b.Pods, c.Pods[from:]...)
			c.Pods = c.Pods[:from]
		}
	}
	for _, m := range members {
		bu.queue.Left[m.Class] -= m.N * n
	}
	bu.queue.Classes = append(bu.queue.Classes, b)
	bu.queue.Left, bu.queue.Stage, bu.queue.DroppedWeight = append(bu.queue.Left, n), append(bu.queue.Stage, 0),
		append(bu.queue.DroppedWeight, 0)
	return true
}

// mergeMembers returns a class without pods for one bundle of these members. It has their total requests, all host
// ports, the highest priority and the existing nodes that all members accept. A member that is a bundle is replaced by
// its own members. It reports false if a host port is needed twice.
func (bu Bundler) mergeMembers(members []pending.Member) (b pending.Class, ok bool) {
	first := &bu.queue.Classes[members[0].Class]
	b.Class = podgroup.Class{Sig: first.Sig, Profile: topology.Plain, Priority: first.Priority}
	b.Nodes = first.AcceptedNodes(bu.rooms)
	for _, m := range members {
		c := &bu.queue.Classes[m.Class]
		b.Amounts = b.Amounts.Add(c.Amounts.Times(int64(m.N)))
		b.Priority = max(b.Priority, c.Priority)
		for range m.N {
			if bu.queue.HasPortConflict(c, b.PortLists) {
				return b, false
			}
			b.Ports, b.PortLists = append(b.Ports, c.Ports...), append(b.PortLists, c.PortLists...)
		}
		b.Nodes = b.Nodes.Intersection(c.AcceptedNodes(bu.rooms))
		b.PodsPerUnit += m.N * c.PodsPerUnit
		if c.Members == nil {
			b.Members = append(b.Members, m)
			continue
		}
		for _, inner := range c.Members {
			b.Members = append(b.Members, pending.Member{Class: inner.Class, N: inner.N * m.N})
		}
	}
	b.Ask = bu.queue.Pods.Ask(b.Amounts)
	b.Bulk = bu.problem.BulkOf(b.Ask)
	return b, true
}

// canShareNode reports whether the host rules allow the members on one node. With preferred,
// preferences count as rules.
func (bu Bundler) canShareNode(members []pending.Member, preferred bool) bool {
	var host topology.HostCounts
	for _, m := range members {
		c := &bu.queue.Classes[m.Class]
		limits := topology.Limits{Together: true, Strict: preferred, DroppedWeight: bu.queue.DroppedWeight[m.Class]}
		if host.Room(bu.queue.Pods.Topology, bu.queue.Profile(c), limits) < m.N {
			return false
		}
		bu.queue.AddToHostCounts(&host, c, m.N)
	}
	return true
}

// bundleStages returns the stages of a bundle: for each stage, the intersection of its members' accept sets, if an
// offering in it can take one bundle. A member with fewer stages than others stays in its last stage.
func (bu Bundler) bundleStages(b *pending.Class, members []pending.Member) []int {
	most := 0
	for _, m := range members {
		most = max(most, len(bu.queue.Classes[m.Class].Stages))
	}
	if slices.ContainsFunc(members, func(m pending.Member) bool { return len(bu.queue.Classes[m.Class].Stages) == 0 }) {
		return nil // some member accepts no offering
	}
	var out []int
	for i := range most {
		var shared bitset.Set // accepted by all members
		for _, m := range members {
			stages := bu.queue.Classes[m.Class].Stages
			set := bu.problem.Accepts.Sets[stages[min(i, len(stages)-1)]]
			if shared == nil {
				shared = set.Clone()
			} else {
				shared.And(set)
			}
		}
		if n := bu.problem.Accepts.Number(shared); !slices.Contains(out, n) && bu.problem.Accepts.AnyHasRoom(shared, &b.Class) {
			out = append(out, n)
		}
	}
	return out
}

// bundleHardSet returns the number of the bundle's accept set without preferences.
func (bu Bundler) bundleHardSet(members []pending.Member) int {
	shared := bu.problem.Accepts.Sets[bu.queue.Classes[members[0].Class].HardSet].Clone()
	for _, m := range members[1:] {
		shared.And(bu.problem.Accepts.Sets[bu.queue.Classes[m.Class].HardSet])
	}
	return bu.problem.Accepts.Number(shared)
}

// Unbundle returns the pods of unplaced bundles to their classes.
func (bu Bundler) Unbundle() {
	for i := len(bu.queue.Classes) - 1; i >= 0; i-- {
		b := &bu.queue.Classes[i]
		if b.Members == nil || bu.queue.Left[i] == 0 {
			continue
		}
		if b.OneNodeOnly {
			groups, _ := bu.queue.Profile(&bu.queue.Classes[b.Members[0].Class]).RequiredHostGroups()
			for _, g := range groups {
				delete(bu.hostAssigned, g)
			}
		}
		from := len(b.Pods) - bu.queue.Left[i]*b.PodsPerUnit
		for rest := b.Pods[from:]; len(rest) > 0; {
			for _, m := range b.Members {
				c := &bu.queue.Classes[m.Class]
				c.Pods = append(slices.Clip(c.Pods), rest[:m.N*c.PodsPerUnit]...)
				bu.queue.Left[m.Class] += m.N
				rest = rest[m.N*c.PodsPerUnit:]
			}
		}
		b.Pods, bu.queue.Left[i] = b.Pods[:from], 0
	}
}

// daemonPodsSuffice reports whether the DaemonSet pods of some accepted offering satisfy all required host
// affinities of the class. Then the class needs no bundle.
func (bu Bundler) daemonPodsSuffice(c int) bool {
	if bu.queue.DaemonPods == nil {
		return false
	}
	groups, _ := bu.queue.Profile(&bu.queue.Classes[c]).RequiredHostGroups()
	return slices.ContainsFunc(bu.queue.Classes[c].Stages, func(stage int) bool {
		hasAll := false
		bu.problem.Accepts.Sets[stage].Each(func(o int) { hasAll = hasAll || bu.queue.DaemonPods.HasAll(groups, o) })
		return hasAll
	})
}
