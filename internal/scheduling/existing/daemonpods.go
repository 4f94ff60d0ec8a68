package existing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// DaemonPods are those DaemonSet pods of planned nodes that an affinity, anti-affinity or spread rule matches. For a
// rule over a label other than the host name, they count only for pods on their own node. The reason is that the number
// of DaemonSet pods in a zone is known only when the nodes are planned. A nil *DaemonPods means that no rule matches a
// DaemonSet pod: all exported methods except Matched accept a nil receiver.
type DaemonPods struct {
	hosts   []*topology.HostCounts // by offer: the counts of its DaemonSet pods for rules over host names; nil: none
	marks   []int                  // by offer: a number, equal for offers whose DaemonSet pods the same groups match
	matched map[int]bitset.Set     // by group: the offers with a pod that the group counts
	owners  map[int]bitset.Set     // by group of an anti-affinity: the offers with a pod that has this anti-affinity
}

// newDaemonPods returns the DaemonSet pods of all offers; nil if no rule matches any.
func newDaemonPods(st *offering.Stock, b *topology.Index) *DaemonPods {
	if len(b.Groups) == 0 || !anyMatches(st, b) {
		return nil
	}
	n := len(st.Offers)
	d := &DaemonPods{
		hosts:   make([]*topology.HostCounts, n),
		marks:   make([]int, n),
		matched: map[int]bitset.Set{},
		owners:  map[int]bitset.Set{},
	}
	type hostPods struct {
		host *topology.HostCounts
		mark int
	}
	known := map[string]hostPods{}
	var key []byte
	var c hostPods
	for o := range st.Offers {
		if shape := st.ShapeOf(o); o == 0 || shape != st.ShapeOf(o-1) { // offers of one instance type mostly have the same shape
			key = kindsKey(key[:0], shape.Kinds, b)
			var ok bool
			if c, ok = known[string(key)]; !ok {
				c = hostPods{mark: len(known), host: countDaemonPods(shape.Kinds, b)}
				known[string(key)] = c
			}
		}
		d.hosts[o], d.marks[o] = c.host, c.mark
		if len(key) > 0 {
			d.addToGroups(o, st, b)
		}
	}
	return d
}

// anyMatches reports whether some rule counts pods of a DaemonSet, or pods of some DaemonSet have an anti-affinity in
// the index.
func anyMatches(st *offering.Stock, b *topology.Index) bool {
	var key []byte
	for o := range st.Offers {
		if shape := st.ShapeOf(o); o == 0 || shape != st.ShapeOf(o-1) {
			if key = kindsKey(key, shape.Kinds, b); len(key) > 0 {
				return true
			}
		}
	}
	return false
}

// kindsKey appends the groups that count pods of these kinds, and the groups of their anti-affinity. It appends nothing
// if there are no such groups.
func kindsKey(key []byte, kinds []*cluster.PodKind, b *topology.Index) []byte {
	for _, k := range kinds {
		s := b.MatchesOf(k)
		for _, n := range s.In {
			key = hashkey.Int(key, n)
		}
		for _, n := range s.Avoids {
			key = hashkey.Int(key, -1-n) // negative, to differ from the groups that count pods
		}
	}
	return key
}

// addToGroups adds the offer to the sets of the groups that match its DaemonSet pods. It skips the groups over labels
// that the offer lacks.
func (d *DaemonPods) addToGroups(offer int, st *offering.Stock, b *topology.Index) {
	add := func(sets map[int]bitset.Set, group int) {
		if key := b.Groups[group].Key; key != topology.Hostname && st.Labels.Column(key).Absent.Has(offer) {
			return
		}
		if sets[group] == nil {
			sets[group] = bitset.New(len(st.Offers))
		}
		sets[group].Add(offer)
	}
	for _, k := range st.ShapeOf(offer).Kinds {
		s := b.MatchesOf(k)
		for _, n := range s.In {
			add(d.matched, n)
		}
		for _, n := range s.Avoids {
			add(d.owners, n)
		}
	}
}

// countDaemonPods returns the counts of a node's DaemonSet pods for rules over host names; nil if no rule counts
// them.
func countDaemonPods(kinds []*cluster.PodKind, b *topology.Index) *topology.HostCounts {
	var out *topology.HostCounts
	counts := func() *topology.HostCounts {
		if out == nil {
			out = &topology.HostCounts{}
		}
		return out
	}
	for _, k := range kinds {
		s := b.MatchesOf(k)
		for _, n := range s.In {
			if b.Groups[n].Key == topology.Hostname {
				counts().AddPods(n, 1)
			}
		}
		for _, n := range s.Avoids {
			if b.Groups[n].Key == topology.Hostname {
				counts().AddOwners(n, 1)
			}
		}
	}
	return out
}

// On returns the counts of the DaemonSet pods, for rules over host names, on an otherwise empty node of the offering.
func (d *DaemonPods) On(offer int) topology.HostCounts {
	if d == nil || d.hosts[offer] == nil {
		return topology.HostCounts{}
	}
	return d.hosts[offer].Clone()
}

// AntiAffinityWith returns the group of an anti-affinity between pods of the profile and DaemonSet pods of the
// offering. Either side may have the anti-affinity. ok is false if there is none.
func (d *DaemonPods) AntiAffinityWith(b *topology.Index, p *topology.Profile, offer int) (group int, ok bool) {
	d.eachExclusion(b, p, func(n int, set bitset.Set) {
		if !ok && set.Has(offer) {
			group, ok = n, true
		}
	})
	return group, ok
}

// Forbidden returns the offerings with an anti-affinity between their DaemonSet pods and pods of the profile. It
// returns nil if there are none.
func (d *DaemonPods) Forbidden(b *topology.Index, p *topology.Profile) bitset.Set {
	var out bitset.Set
	d.eachExclusion(b, p, func(_ int, set bitset.Set) {
		if out == nil {
			out = set.Clone()
		}
		out.Or(set)
	})
	return out
}

// eachExclusion visits the groups of anti-affinities between pods of the profile and DaemonSet pods. on has the
// offerings whose DaemonSet pods have, or are excluded by, the anti-affinity of that group.
func (d *DaemonPods) eachExclusion(b *topology.Index, p *topology.Profile, visit func(group int, on bitset.Set)) {
	if d == nil {
		return
	}
	for _, rules := range [][]topology.Rule{p.Host, p.Domain} {
		for _, r := range rules {
			if set := d.matched[r.Group]; r.Kind == topology.AntiAffinity && r.Weight == 0 && set != nil {
				visit(r.Group, set)
			}
		}
	}
	for _, in := range [][]int{p.HostIn, p.In} {
		for _, n := range in {
			if set := d.owners[n]; b.Groups[n].Kind == topology.AntiAffinity && set != nil {
				visit(n, set)
			}
		}
	}
}

// HasAll reports whether the offering has, for each of the groups, a DaemonSet pod that the group counts.
func (d *DaemonPods) HasAll(groups []int, offer int) bool {
	if d == nil {
		return false
	}
	return !slices.ContainsFunc(groups, func(n int) bool { return d.matched[n] == nil || !d.matched[n].Has(offer) })
}

// Matched returns the offerings with a DaemonSet pod that the group counts; nil if there are none.
func (d *DaemonPods) Matched(group int) bitset.Set { return d.matched[group] }

// KeepEqual keeps in among only the offerings whose DaemonSet pods are matched by the same groups as the DaemonSet
// pods of offer.
func (d *DaemonPods) KeepEqual(offer int, among bitset.Set) {
	if d == nil {
		return
	}
	among.Each(func(o int) {
		if d.marks[o] != d.marks[offer] {
			among.Remove(o)
		}
	})
}

// CountedOffers returns the offers that count for the group of a spread: those that pods with the spread accept.
func CountedOffers(st *offering.Stock, q *podgroup.Queue, group int) bitset.Set {
	g := &q.Topology.Groups[group]
	s := &q.Signatures[g.Signature]
	var out bitset.Set
	if g.AnyNode {
		out = st.Labels.Satisfying(nil)
	} else {
		out = st.Labels.SatisfyingOne(s.Required)
	}
	if g.HonorTaints {
		out.And(st.Tolerated(s.Tolerations))
	}
	return st.Having(out, g.Keys)
}

// expectDaemonPods sets onEveryNode and daemonOnly. In the domains of daemonOnly, it adds one matched pod to the domain
// counts, so that pods with the affinity can be assigned to these domains.
func (t *TopologyState) expectDaemonPods(st *offering.Stock, q *podgroup.Queue) {
	if t.DaemonPods == nil {
		return
	}
	t.onEveryNode, t.daemonOnly = map[int]bool{}, map[int][]bool{}
	for n, matched := range t.DaemonPods.matched {
		group := &q.Topology.Groups[n]
		switch {
		case group.Kind == topology.Spread && group.Key == topology.Hostname:
			unmatched := CountedOffers(st, q, n)
			unmatched.AndNot(matched)
			t.onEveryNode[n] = !unmatched.Any()
		case group.Kind == topology.Affinity && group.Key != topology.Hostname && group.Hard:
			f := t.Keys[group.Key]
			daemonOnly := make([]bool, len(f.Values))
			for d := range f.Values {
				if daemonOnly[d] = t.DomainCounts.Matched(n, d) == 0 && f.Offers[d].Intersects(matched); daemonOnly[d] {
					t.DomainCounts.AddPods(n, d, 1)
				}
			}
			t.daemonOnly[n] = daemonOnly
		}
	}
}

// FewestDaemonPods returns the minimum number of the pods of a host spread's group on a host that the DaemonSet pods of
// planned nodes guarantee. The result is 1 if every planned node that counts for the spread has a DaemonSet pod of the
// group, and every existing node that counts has a pod of the group. Otherwise the result is 0. It is also 0 if fewer
// than minDomains nodes count, or if EmptyHosts has the group.
func (t *TopologyState) FewestDaemonPods(group, minDomains int) int {
	f := t.Fewest[group]
	if !t.onEveryNode[group] || t.EmptyHosts[group] || f.Nodes < minDomains || f.Nodes > 0 && f.Pods == 0 {
		return 0
	}
	return 1
}

// DaemonPodsExceedSpread reports whether the DaemonSet pods of an otherwise empty node of the offering make a host spread
// reject every pod of the profile.
func (t *TopologyState) DaemonPodsExceedSpread(b *topology.Index, p *topology.Profile, offer int) bool {
	if t.DaemonPods == nil || t.DaemonPods.hosts[offer] == nil {
		return false
	}
	return t.DaemonPods.hosts[offer].Room(b, p, topology.Limits{Fewest: t.FewestDaemonPods, Together: true}) == 0
}

// DaemonOnlyAffinity returns the groups of the profile's required affinities that, in the domains of the cell, only
// DaemonSet pods of planned nodes match. cell has the domain for each key of the profile.
func (t *TopologyState) DaemonOnlyAffinity(p *topology.Profile, cell []int) (groups []int) {
	if len(t.daemonOnly) == 0 {
		return nil
	}
	for _, r := range p.Domain {
		if daemonOnly := t.daemonOnly[r.Group]; r.Kind == topology.Affinity && r.Weight == 0 && daemonOnly != nil {
			if d := cell[slices.Index(p.Keys, t.queue.Topology.Groups[r.Group].Key)]; d < len(daemonOnly) && daemonOnly[d] {
				groups = append(groups, r.Group)
			}
		}
	}
	return groups
}

// AddPlannedNode records a planned node that may be launched as any of these offerings. If all offerings are in one
// domain, and each offering has a DaemonSet pod that an affinity matches, this pod also satisfies the affinity of pods
// on other nodes.
func (t *TopologyState) AddPlannedNode(offers bitset.Set) {
	first := offers.Next(0)
	if first < 0 || len(t.daemonOnly) == 0 {
		return
	}
	for n, daemonOnly := range t.daemonOnly {
		f := t.Keys[t.queue.Topology.Groups[n].Key]
		d := f.OfferAt[first]
		if d >= len(daemonOnly) || !daemonOnly[d] {
			continue
		}
		unmatched := offers.Clone()
		unmatched.AndNot(f.Offers[d].Intersection(t.DaemonPods.matched[n]))
		if !unmatched.Any() {
			t.daemonOnly = maps.Clone(t.daemonOnly) // the map is shared with other forks
			t.daemonOnly[n] = slices.Clone(daemonOnly)
			t.daemonOnly[n][d] = false
		}
	}
}
