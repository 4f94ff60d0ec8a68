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

// DaemonPods are the DaemonSet pods of planned nodes that affinity, anti-affinity and spread rules match. For a rule
// over a label other than the host name, they count for pods on their own node only, because the number of them in a
// zone is known only when the nodes are planned. nil means that no rule matches a DaemonSet pod; only Matched may not
// be called then.
type DaemonPods struct {
	hosts   []*topology.HostCounts // by offer: its DaemonSet pods as rules over host names count them; nil: none
	marks   []int                  // by offer: a number, equal for offers with the same DaemonSet pods
	matched map[int]bitset.Set     // by group: the offers with a pod that the group counts
	owners  map[int]bitset.Set     // by group of an anti-affinity: the offers with a pod that has this anti-affinity
}

// newDaemonPods returns the DaemonSet pods of all offers; nil if no rule matches any.
func newDaemonPods(st *offering.Stock, b *topology.Index) *DaemonPods {
	if len(b.Groups) == 0 || !anyCounts(st, b) {
		return nil
	}
	n := len(st.Offers)
	g := &DaemonPods{
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
		if shape := st.ShapeOf(o); o == 0 || shape != st.ShapeOf(o-1) { // offers of one model mostly have the same shape
			key = kindsKey(key[:0], shape.Kinds, b)
			var ok bool
			if c, ok = known[string(key)]; !ok {
				c = hostPods{mark: len(known), host: countDaemonPods(shape.Kinds, b)}
				known[string(key)] = c
			}
		}
		g.hosts[o], g.marks[o] = c.host, c.mark
		if len(key) > 0 {
			g.note(o, st, b)
		}
	}
	return g
}

// anyCounts reports whether a rule counts the pods of any DaemonSet, or the pods of any DaemonSet have an anti-affinity in the index.
func anyCounts(st *offering.Stock, b *topology.Index) bool {
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
func kindsKey(key []byte, kinds []*cluster.Kind, b *topology.Index) []byte {
	for _, k := range kinds {
		s := b.MatchesOf(k)
		for _, n := range s.In {
			key = hashkey.Int(key, n)
		}
		for _, n := range s.Avoids {
			key = hashkey.Int(key, -1-n)
		}
	}
	return key
}

// note adds the offer to the sets of the groups that match its DaemonSet pods. It skips groups over labels that the offer lacks.
func (g *DaemonPods) note(offer int, st *offering.Stock, b *topology.Index) {
	add := func(sets map[int]bitset.Set, group int) {
		if key := b.Groups[group].Key; key != topology.Hostname && st.Labels.Of(key).Absent.Has(offer) {
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
			add(g.matched, n)
		}
		for _, n := range s.Avoids {
			add(g.owners, n)
		}
	}
}

// countDaemonPods returns the DaemonSet pods of a node as rules over host names count them; nil if no rule counts them.
func countDaemonPods(kinds []*cluster.Kind, b *topology.Index) *topology.HostCounts {
	var out *topology.HostCounts
	tally := func() *topology.HostCounts {
		if out == nil {
			out = &topology.HostCounts{}
		}
		return out
	}
	for _, k := range kinds {
		s := b.MatchesOf(k)
		for _, n := range s.In {
			if b.Groups[n].Key == topology.Hostname {
				tally().AddPods(n, 1)
			}
		}
		for _, n := range s.Avoids {
			if b.Groups[n].Key == topology.Hostname {
				tally().AddOwners(n, 1)
			}
		}
	}
	return out
}

// On returns the DaemonSet pods of an otherwise empty node of the offering, as rules over host names count them.
func (g *DaemonPods) On(offer int) topology.HostCounts {
	if g == nil || g.hosts[offer] == nil {
		return topology.HostCounts{}
	}
	return g.hosts[offer].Clone()
}

// AntiAffinityWith returns the group of an anti-affinity between pods of the profile and DaemonSet pods of the offering, whichever of
// them has the anti-affinity. ok is false if there is none.
func (g *DaemonPods) AntiAffinityWith(b *topology.Index, p *topology.Profile, offer int) (group int, ok bool) {
	g.eachExclusion(b, p, func(n int, set bitset.Set) {
		if !ok && set.Has(offer) {
			group, ok = n, true
		}
	})
	return group, ok
}

// Forbidden returns the offerings with an anti-affinity between their DaemonSet pods and pods of the profile; nil if there are none.
func (g *DaemonPods) Forbidden(b *topology.Index, p *topology.Profile) bitset.Set {
	var out bitset.Set
	g.eachExclusion(b, p, func(_ int, set bitset.Set) {
		if out == nil {
			out = set.Clone()
		}
		out.Or(set)
	})
	return out
}

// eachExclusion visits the groups of anti-affinities between pods of the profile and DaemonSet pods. on has the
// offerings with such DaemonSet pods.
func (g *DaemonPods) eachExclusion(b *topology.Index, p *topology.Profile, visit func(group int, on bitset.Set)) {
	if g == nil {
		return
	}
	for _, rules := range [][]topology.Rule{p.Host, p.Domain} {
		for _, r := range rules {
			if set := g.matched[r.Group]; r.Kind == topology.AntiAffinity && r.Weight == 0 && set != nil {
				visit(r.Group, set)
			}
		}
	}
	for _, in := range [][]int{p.HostIn, p.In} {
		for _, n := range in {
			if set := g.owners[n]; b.Groups[n].Kind == topology.AntiAffinity && set != nil {
				visit(n, set)
			}
		}
	}
}

// HasAll reports whether the offering has, for each of the groups, a DaemonSet pod that the group counts.
func (g *DaemonPods) HasAll(groups []int, offer int) bool {
	if g == nil {
		return false
	}
	return !slices.ContainsFunc(groups, func(n int) bool { return g.matched[n] == nil || !g.matched[n].Has(offer) })
}

// Matched returns the offerings with a DaemonSet pod that the group counts; nil if there are none.
func (g *DaemonPods) Matched(group int) bitset.Set { return g.matched[group] }

// KeepEqual removes from among the offerings whose DaemonSet pods differ from those of offer.
func (g *DaemonPods) KeepEqual(offer int, among bitset.Set) {
	if g == nil {
		return
	}
	among.Each(func(o int) {
		if g.marks[o] != g.marks[offer] {
			among.Remove(o)
		}
	})
}

// CountedOffers returns the offers that count for the group of a spread: the offers that the owner of the rule accepts.
func CountedOffers(st *offering.Stock, q *podgroup.Queue, group int) bitset.Set {
	g := &q.Topology.Groups[group]
	s := &q.Signatures[g.Nodes]
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

// expect sets everywhere and alone: the host spreads that count a DaemonSet pod on every planned node that counts, and
// the domains in which only DaemonSet pods of planned nodes match an affinity. In these domains it adds one matched pod
// to the domain counts, so that pods with the affinity may be assigned there.
func (t *TopologyState) expect(st *offering.Stock, q *podgroup.Queue) {
	if t.DaemonPods == nil {
		return
	}
	t.everywhere, t.alone = map[int]bool{}, map[int][]bool{}
	for n, with := range t.DaemonPods.matched {
		group := &q.Topology.Groups[n]
		switch {
		case group.Kind == topology.Spread && group.Key == topology.Hostname:
			others := CountedOffers(st, q, n)
			others.AndNot(with)
			t.everywhere[n] = !others.Any()
		case group.Kind == topology.Affinity && group.Key != topology.Hostname && group.Hard:
			f := t.Keys[group.Key]
			alone := make([]bool, len(f.Values))
			for d := range f.Values {
				if alone[d] = t.DomainCounts.Matched(n, d) == 0 && f.Offers[d].Meets(with); alone[d] {
					t.DomainCounts.AddPods(n, d, 1)
				}
			}
			t.alone[n] = alone
		}
	}
}

// FewestDaemonPods returns 1 if each host that counts for the group of a host spread has a pod of the group, because
// planned nodes have a DaemonSet pod; otherwise 0. It also returns 0 if fewer than minDomains nodes count.
func (t *TopologyState) FewestDaemonPods(group, minDomains int) int {
	f := t.Fewest[group]
	if !t.everywhere[group] || t.EmptyHosts[group] || f.Nodes < minDomains || f.Nodes > 0 && f.Pods == 0 {
		return 0
	}
	return 1
}

// IsCrowded reports whether an otherwise empty node of the offering has too many DaemonSet pods for a host spread to
// allow a pod of the profile.
func (t *TopologyState) IsCrowded(b *topology.Index, p *topology.Profile, offer int) bool {
	if t.DaemonPods == nil || t.DaemonPods.hosts[offer] == nil {
		return false
	}
	return t.DaemonPods.hosts[offer].Room(b, p, topology.Limits{Fewest: t.FewestDaemonPods, Together: true}) == 0
}

// UnmetAffinity returns the groups of required affinities of the profile that only DaemonSet pods of planned nodes
// match in the domains of the cell.
func (t *TopologyState) UnmetAffinity(p *topology.Profile, cell []int) (groups []int) {
	if len(t.alone) == 0 {
		return nil
	}
	for _, r := range p.Domain {
		if alone := t.alone[r.Group]; r.Kind == topology.Affinity && r.Weight == 0 && alone != nil {
			if d := cell[slices.Index(p.Keys, t.queue.Topology.Groups[r.Group].Key)]; d < len(alone) && alone[d] {
				groups = append(groups, r.Group)
			}
		}
	}
	return groups
}

// AddPlannedNode records a planned node that may become any of these offerings. If all of them are in one domain and
// have a DaemonSet pod that an affinity matches, that pod also satisfies the affinity of pods on other nodes.
func (t *TopologyState) AddPlannedNode(offers bitset.Set) {
	first := offers.Next(0)
	if first < 0 || len(t.alone) == 0 {
		return
	}
	for n, alone := range t.alone {
		f := t.Keys[t.queue.Topology.Groups[n].Key]
		d := f.OfferAt[first]
		if d >= len(alone) || !alone[d] {
			continue
		}
		others := offers.Clone()
		others.AndNot(f.Offers[d].Both(t.DaemonPods.matched[n]))
		if !others.Any() {
			t.alone = maps.Clone(t.alone) // the map is shared with other forks
			t.alone[n] = slices.Clone(alone)
			t.alone[n][d] = false
		}
	}
}
