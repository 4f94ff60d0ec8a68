package existing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// Rooms is the free room of the existing nodes that take pods.
type Rooms struct {
	Nodes     []*cluster.Node       // the nodes that take pods, in the order of compareNodes
	Room      []resources.Vector    // by node: its free room; slices of cells
	Ports     [][]int               // by node: its lists of used host ports, by their numbers in podgroup.Queue.Ports
	Hosts     []topology.HostCounts // by node: the counts of its pods for rules over host names; elements are replaced, never changed
	Accepted  []bitset.Set          // by signature: the nodes that the signature accepts
	Preferred []bitset.Set          // by signature: nodes of Accepted that it prefers, by PreferNoSchedule taints, then by preferences
	Full      bitset.Set            // nodes that certainly have no room for a pod of any class

	cells    []int64            // memory of Room
	isShared bool               // cells, Ports and Hosts are shared with another Rooms
	labels   *bitset.Index      // finds nodes by label
	taints   []taintGroup       // all nodes, grouped by taints
	withPod  map[int]bitset.Set // cache of NodesWithPod, by group over host names
}

type taintGroup struct {
	taints []requirements.Taint
	nodes  bitset.Set
}

// Clone returns a copy that can be filled independently. The copy shares all data with r until the first call of its
// Set, which copies the rooms, ports and host counts. r must not be changed afterwards.
func (r *Rooms) Clone() *Rooms {
	out := *r
	out.isShared, out.withPod = true, map[int]bitset.Set{}
	return &out
}

// Set replaces the free room, the ports and the host counts of a node after pods were added to it.
func (r *Rooms) Set(node int, free resources.Vector, ports []int, host topology.HostCounts) {
	if r.isShared {
		r.isShared, r.cells = false, slices.Clone(r.cells)
		r.Room = resources.VectorsIn(r.cells, len(r.Nodes))
		r.Ports, r.Hosts = slices.Clone(r.Ports), slices.Clone(r.Hosts)
	}
	copy(r.Room[node], free)
	r.Ports[node], r.Hosts[node] = slices.Clip(ports), host
	for group, withPod := range r.withPod {
		if host.Matched(group) > 0 {
			withPod.Add(node)
		}
	}
}

// NewRooms returns the free room of the nodes of the snapshot, and the nodes that each signature of the queue accepts.
func NewRooms(s cluster.Snapshot, q *podgroup.Queue) *Rooms {
	r := &Rooms{Nodes: make([]*cluster.Node, 0, len(s.Nodes)), withPod: map[int]bitset.Set{}}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Leaving {
			r.Nodes = append(r.Nodes, n)
		}
	}
	if !slices.IsSortedFunc(r.Nodes, compareNodes) {
		slices.SortStableFunc(r.Nodes, compareNodes)
	}
	r.cells = make([]int64, len(r.Nodes)*len(q.Dims))
	r.Room, r.Ports = resources.VectorsIn(r.cells, len(r.Nodes)), make([][]int, len(r.Nodes))
	for i, n := range r.Nodes {
		q.Dims.SetRemaining(r.Room[i], n.Allocatable, n.Requested)
		if relevant := q.Ports.Relevant(n.HostPorts); len(relevant) > 0 {
			r.Ports[i] = []int{q.Ports.Number(relevant)}
		}
	}
	r.Hosts = make([]topology.HostCounts, len(r.Nodes))
	r.labels = bitset.NewIndex(len(r.Nodes), func(key string, add func(from, to int, value string)) {
		for i, n := range r.Nodes {
			if value, ok := n.Labels[key]; ok {
				add(i, i+1, value)
			} else if key == topology.Hostname {
				add(i, i+1, n.Name)
			}
		}
	}).WithNames(r.labelKeys)
	r.findTaints()
	for i := range q.Signatures {
		r.addSignature(&q.Signatures[i])
	}
	r.findFull(q)
	return r
}

func (r *Rooms) labelKeys() map[string]bool {
	out := map[string]bool{topology.Hostname: true}
	for _, n := range r.Nodes {
		for key := range n.Labels {
			out[key] = true
		}
	}
	return out
}

// compareNodes orders nodes: initialized ones first, then joined ones, then by name.
func compareNodes(a, b *cluster.Node) int {
	switch {
	case a.Initialized != b.Initialized:
		return trueFirst(a.Initialized)
	case a.Joined != b.Joined:
		return trueFirst(a.Joined)
	}
	return cmp.Compare(a.Name, b.Name)
}

// trueFirst compares a with its opposite, where true sorts before false.
func trueFirst(a bool) int {
	if a {
		return -1
	}
	return 1
}

// addSignature appends to Accepted and Preferred the nodes that the signature accepts, and the nodes that it prefers.
// Accepted nodes that are not preferred are still used before a node is launched, because kube-scheduler binds pods
// there.
func (r *Rooms) addSignature(s *podgroup.Signature) {
	accepted := r.labels.SatisfyingOne(s.Required)
	tolerated, unavoided := r.tolerated(s)
	accepted.And(tolerated)
	preferred := accepted.Intersection(unavoided)
	if !preferred.Any() {
		preferred = accepted
	}
	for _, p := range s.Preferred {
		if both := preferred.Intersection(r.labels.Satisfying(p.Requirements)); both.Any() {
			preferred = both
		}
	}
	r.Accepted = append(r.Accepted, accepted)
	r.Preferred = append(r.Preferred, preferred)
}

func (r *Rooms) findTaints() {
	numbers := map[string]int{}
	var key []byte
	for i, n := range r.Nodes {
		key = key[:0]
		for _, t := range n.Taints {
			key = hashkey.Text(key, t.Key, t.Value, string(t.Effect))
		}
		number, ok := numbers[string(key)]
		if !ok {
			number = len(r.taints)
			numbers[string(key)] = number
			r.taints = append(r.taints, taintGroup{n.Taints, bitset.New(len(r.Nodes))})
		}
		r.taints[number].nodes.Add(i)
	}
}

// tolerated returns the nodes whose NoSchedule and NoExecute taints the signature tolerates, and the subset of nodes
// whose PreferNoSchedule taints it tolerates too (unavoided).
func (r *Rooms) tolerated(s *podgroup.Signature) (accepted, unavoided bitset.Set) {
	accepted, unavoided = bitset.New(len(r.Nodes)), bitset.New(len(r.Nodes))
	for _, alike := range r.taints {
		if _, isRejected := requirements.Untolerated(alike.taints, s.Tolerations); isRejected {
			continue
		}
		accepted.Or(alike.nodes)
		avoided := func(t requirements.Taint) bool { return !requirements.Tolerated(t, s.Tolerations) }
		if !slices.ContainsFunc(alike.taints, avoided) {
			unavoided.Or(alike.nodes)
		}
	}
	return accepted, unavoided
}

// findFull sets Full. It compares the room of each node with the smallest request of each resource. If these requests
// are of different classes, Full may lack a node that has no room for any class.
func (r *Rooms) findFull(q *podgroup.Queue) {
	r.Full = bitset.New(len(r.Nodes))
	var least resources.Vector
	for c := range q.Classes {
		if ask := q.Classes[c].Ask; least == nil {
			least = ask.Clone()
		} else {
			for i := range least {
				least[i] = min(least[i], ask[i])
			}
		}
	}
	for i := range r.Nodes {
		if !least.Fits(r.Room[i]) {
			r.Full.Add(i)
		}
	}
}

// NodesWithPod returns the nodes on which the group counts a pod. The group is over host names.
func (r *Rooms) NodesWithPod(group int) bitset.Set {
	withPod, ok := r.withPod[group]
	if !ok {
		withPod = bitset.New(len(r.Nodes))
		for i := range r.Hosts {
			if r.Hosts[i].Matched(group) > 0 {
				withPod.Add(i)
			}
		}
		r.withPod[group] = withPod
	}
	return withPod
}
