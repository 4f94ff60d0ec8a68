package existing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// TopologyState has the domains of the labels of topology rules, and the counts of the pods in each domain.
type TopologyState struct {
	Keys           map[string]*LabelDomains // by label, except host names
	DomainCounts   *topology.DomainCounts   // pods by group and domain, for groups over labels other than the host name
	Counted        []bitset.Set             // by group: the nodes whose pods count; nil: all
	CountedDomains [][]bool                 // by group of a spread, not over host names: for each domain, whether it counts
	CertainDomains [][]bool                 // like CountedDomains, but only the domains that count without new nodes
	EmptyHosts     map[int]bool             // by group over host names: whether to assume that a planned node has no pod of the group
	OnClosedNodes  map[int]bool             // by group over host names: whether nodes closed to new pods have its pods
	Fewest         map[int]FewestPods       // by group of a spread over host names

	DaemonPods *DaemonPods // the DaemonSet pods of planned nodes; nil: no rule matches any

	combined    map[string][][]int // cache of DomainCombinations, by labels
	queue       *podgroup.Queue
	rooms       *Rooms              // the rooms before any pod is placed
	members     [][]*podgroup.Class // cache of membersOf, by group
	alwaysEmpty map[int]bool        // cache of AlwaysHasEmptyHost, by group
	closed      map[int]FewestPods  // like Fewest, but of only the nodes that take no new pods

	onEveryNode map[int]bool   // by group of a host spread: whether every planned node that counts has a DaemonSet pod of the group
	daemonOnly  map[int][]bool // by group of a required affinity: for each domain, whether only DaemonSet pods of planned nodes match there
}

// LabelDomains is the domains of one label.
type LabelDomains struct {
	Values  []string     // the domains, sorted
	Offers  []bitset.Set // by domain: its offers, by index in Stock.Offers; the last set has those without the label
	Nodes   []bitset.Set // by domain: its nodes, by index in Rooms.Nodes; the last set has those without the label
	OfferAt []int        // by offer: its domain; len(Values) without the label
	nodeAt  []int        // by node: its domain; len(Values) without the label
}

// FewestPods is the minimum number of pods of a group on a node.
type FewestPods struct {
	Pods  int // number of pods on the node with the fewest
	Nodes int // number of nodes among which the minimum is taken
}

// NewTopologyState computes the domains for the rules of the queue, and counts the residents of nodes in DomainCounts
// and r.Hosts. No pods may be added to r afterwards. all has the nodes of the snapshot, also leaving ones.
func NewTopologyState(q *podgroup.Queue, a *offering.Acceptance, r *Rooms, all []cluster.Node) *TopologyState {
	t := &TopologyState{
		Keys:          map[string]*LabelDomains{},
		combined:      map[string][][]int{},
		Fewest:        map[int]FewestPods{},
		OnClosedNodes: map[int]bool{},
		EmptyHosts:    map[int]bool{},
	}
	t.queue, t.rooms, t.alwaysEmpty, t.closed = q, r, map[int]bool{}, map[int]FewestPods{}
	domains := map[string]int{} // by label: number of domains
	var empty *LabelDomains     // shared by all labels that no node and no offer has
	for i := range q.Topology.Groups {
		key := q.Topology.Groups[i].Key
		if _, ok := t.Keys[key]; ok || key == topology.Hostname {
			continue
		}
		offers, nodes, more := a.Stock.Labels.Column(key), r.labels.Column(key), valuesOf(key, all)
		f := empty
		if f == nil || len(offers.Values)+len(nodes.Values)+len(more) > 0 {
			f = newLabelDomains(offers, nodes, more, len(a.Stock.Offers), len(r.Nodes))
		}
		if len(f.Values) == 0 {
			empty = f
		}
		t.Keys[key], domains[key] = f, len(f.Values)
	}
	t.DomainCounts = topology.NewDomainCounts(q.Topology, domains)
	if len(q.Topology.Groups) == 0 {
		return t
	}
	t.CountedDomains, t.CertainDomains = make([][]bool, len(q.Topology.Groups)), make([][]bool, len(q.Topology.Groups))
	t.Counted = t.countable(q, a, r)
	for i, n := range r.Nodes {
		t.addResidents(q, n, i, &r.Hosts[i])
	}
	for i := range all {
		if all[i].Leaving { // the residents that stay on the node still count in its domains
			t.addResidents(q, &all[i], -1, nil)
			t.countClosedNode(q, &all[i])
		}
	}
	t.FindFewest(r, q.Topology, t.Counted)
	t.DaemonPods = newDaemonPods(a.Stock, q.Topology)
	t.expectDaemonPods(a.Stock, q)
	return t
}

// valuesOf returns the label's values on leaving nodes with residents.
func valuesOf(key string, nodes []cluster.Node) []string {
	var out []string
	for i := range nodes {
		if value, ok := nodes[i].Labels[key]; ok && nodes[i].Leaving && len(nodes[i].Residents) > 0 {
			out = append(out, value)
		}
	}
	return out
}

// newLabelDomains returns the domains of a label. offers and nodes are by value of the label; more has the values on
// leaving nodes.
func newLabelDomains(offers, nodes *bitset.Column, more []string, offerCount, nodeCount int) *LabelDomains {
	f := &LabelDomains{nodeAt: make([]int, nodeCount), OfferAt: make([]int, offerCount)}
	f.Values = slices.Compact(slices.Sorted(slices.Values(slices.Concat(offers.Values, nodes.Values, more))))
	for i := range f.nodeAt {
		f.nodeAt[i] = len(f.Values)
	}
	for i := range f.OfferAt {
		f.OfferAt[i] = len(f.Values)
	}
	pick := func(k *bitset.Column, value string, size int) bitset.Set {
		if i, ok := slices.BinarySearch(k.Values, value); ok {
			return k.Sets[i]
		}
		return bitset.New(size)
	}
	for d, value := range f.Values {
		f.Offers = append(f.Offers, pick(offers, value, offerCount))
		f.Nodes = append(f.Nodes, pick(nodes, value, nodeCount))
		f.Nodes[d].Each(func(i int) { f.nodeAt[i] = d })
		f.Offers[d].Each(func(o int) { f.OfferAt[o] = d })
	}
	f.Offers, f.Nodes = append(f.Offers, offers.Absent), append(f.Nodes, nodes.Absent)
	return f
}

// countable returns, for each group of a spread, the nodes whose pods count; nil: all nodes. It also sets
// CertainDomains to the domains with such a node, which count in every plan. It sets CountedDomains to these domains
// and the domains in which a node for the owner of the spread can be launched.
func (t *TopologyState) countable(q *podgroup.Queue, a *offering.Acceptance, r *Rooms) []bitset.Set {
	out := make([]bitset.Set, len(q.Topology.Groups))
	for n := range q.Topology.Groups {
		g := &q.Topology.Groups[n]
		if g.Kind != topology.Spread {
			continue
		}
		s := &q.Signatures[g.Signature]
		if !g.AnyNode && len(s.Required) > 0 {
			out[n] = r.labels.SatisfyingOne(s.Required)
		}
		if g.HonorTaints {
			tolerated, _ := r.tolerated(s)
			if out[n] != nil {
				tolerated.And(out[n])
			}
			out[n] = tolerated
		}
		for _, key := range g.Keys {
			if out[n] == nil {
				out[n] = r.labels.Satisfying(nil)
			}
			out[n].AndNot(r.labels.Column(key).Absent)
		}
		if g.Key == topology.Hostname {
			continue
		}
		f := t.Keys[g.Key]
		counted, certain := make([]bool, len(f.Values)), make([]bool, len(f.Values))
		for d := range f.Values {
			certain[d] = f.Nodes[d].Intersects(out[n])
			counted[d] = certain[d] || a.CanLaunch(g.Signature, a.Stock.Having(f.Offers[d], g.Keys))
		}
		t.CountedDomains[n], t.CertainDomains[n] = counted, certain
		t.DomainCounts.SetCounted(n, counted)
	}
	return out
}

// addResidents counts the residents of a node: in tally for groups over host names, and in the domain counts for
// other groups. Without tally, it sets OnClosedNodes for groups over host names. number is the index of the node in
// Rooms.Nodes; -1 for a node that takes no pods.
func (t *TopologyState) addResidents(q *podgroup.Queue, n *cluster.Node, number int, tally *topology.HostCounts) {
	index := q.Topology
	for _, resident := range n.Residents {
		matches := index.MatchesOf(resident.PodKind)
		for _, g := range matches.In {
			group := &index.Groups[g]
			if group.Kind == topology.Spread && (resident.Terminating || !t.counts(q, g, n, number)) {
				continue
			}
			if group.Key == topology.Hostname {
				if tally != nil {
					tally.AddPods(g, resident.Count)
				} else {
					t.OnClosedNodes[g] = true
				}
			} else {
				t.DomainCounts.AddPods(g, t.domain(group.Key, n, number), resident.Count)
			}
		}
		for _, g := range matches.Avoids {
			if key := index.Groups[g].Key; key == topology.Hostname {
				if tally != nil {
					tally.AddOwners(g, resident.Count)
				}
			} else {
				t.DomainCounts.AddOwners(g, t.domain(key, n, number), resident.Count)
			}
		}
	}
}

// countClosedNode counts a node that accepts no new pods. If a pod that a spread counts stays on the node, the spread
// counts the node's domain, or the node itself if the spread is over host names. A node on which no such pod stays does
// not count, as if it were removed already. Otherwise its domain could have the minimum of 0 pods, and the spread would
// reject the node's pods in other domains.
func (t *TopologyState) countClosedNode(q *podgroup.Queue, n *cluster.Node) {
	remaining := map[int]int{} // number of pods on the node, by group over host names
	for _, resident := range n.Residents {
		if resident.Terminating || resident.Count <= 0 {
			continue
		}
		for _, g := range q.Topology.MatchesOf(resident.PodKind).In {
			counted := t.CountedDomains[g]
			if q.Topology.Groups[g].Kind != topology.Spread || !t.counts(q, g, n, -1) {
				continue
			}
			if counted == nil { // a spread over host names
				remaining[g] += resident.Count
				continue
			}
			if d := t.domain(q.Topology.Groups[g].Key, n, -1); d < len(counted) && !t.CertainDomains[g][d] {
				counted[d], t.CertainDomains[g][d] = true, true
				t.DomainCounts.SetCounted(g, counted)
			}
		}
	}
	for g, pods := range remaining {
		s, known := t.closed[g]
		if !known || pods < s.Pods {
			s.Pods = pods
		}
		s.Nodes++
		t.closed[g] = s
	}
}

// counts reports whether the pods of a node count for the group of a spread. number is as in addResidents.
func (t *TopologyState) counts(q *podgroup.Queue, group int, n *cluster.Node, number int) bool {
	if number >= 0 {
		return t.Counted[group] == nil || t.Counted[group].Has(number)
	}
	g := &q.Topology.Groups[group]
	if g.HonorTaints {
		return false // a node that accepts no pods has a taint
	}
	if slices.ContainsFunc(g.Keys, func(key string) bool { _, ok := n.Labels[key]; return !ok }) {
		return false
	}
	required := q.Signatures[g.Signature].Required
	accepts := func(reqs requirements.Requirements) bool { return reqs.Accepts(n.Labels) }
	return g.AnyNode || len(required) == 0 || slices.ContainsFunc(required, accepts)
}

// domain returns the number of the node's domain of a label. number is as in addResidents.
func (t *TopologyState) domain(key string, n *cluster.Node, number int) int {
	f := t.Keys[key]
	if number >= 0 {
		return f.nodeAt[number]
	}
	if d, ok := slices.BinarySearch(f.Values, n.Labels[key]); ok {
		return d
	}
	return len(f.Values)
}

// FewestOf returns FewestPods.Pods of the group, or 0 if fewer than minDomains nodes count or EmptyHosts has the group.
func (t *TopologyState) FewestOf(group, minDomains int) int {
	if f := t.Fewest[group]; f.Nodes >= minDomains && !t.EmptyHosts[group] {
		return f.Pods
	}
	return 0
}

// FindFewest sets Fewest for all spreads over host names. counted is as in TopologyState.Counted.
func (t *TopologyState) FindFewest(r *Rooms, b *topology.Index, counted []bitset.Set) {
	for g := range b.Groups {
		if b.Groups[g].Kind != topology.Spread || b.Groups[g].Key != topology.Hostname {
			continue
		}
		among := counted[g]
		if among == nil {
			among = bitset.New(len(r.Nodes))
			among.AddRange(0, len(r.Nodes))
		}
		f := FewestPods{Pods: -1, Nodes: among.Count()}
		if closed, ok := t.closed[g]; ok {
			f.Pods, f.Nodes = closed.Pods, f.Nodes+closed.Nodes
		}
		for i := among.Next(0); i >= 0 && f.Pods != 0; i = among.Next(i + 1) {
			if n := r.Hosts[i].Matched(g); f.Pods < 0 || n < f.Pods {
				f.Pods = n
			}
		}
		f.Pods = max(f.Pods, 0)
		t.Fewest[g] = f
	}
}

// Fork returns a copy whose domain counts and Fewest can be changed independently.
func (t *TopologyState) Fork() *TopologyState {
	out := *t
	out.DomainCounts, out.Fewest = t.DomainCounts.Clone(), maps.Clone(t.Fewest)
	return &out
}

// HasPod reports whether the group, which is over host names, counts a pod on any node, including nodes that accept no
// new pods.
func (t *TopologyState) HasPod(rooms *Rooms, group int) bool {
	return t.OnClosedNodes[group] || rooms.NodesWithPod(group).Any()
}
