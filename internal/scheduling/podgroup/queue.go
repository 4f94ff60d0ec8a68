package podgroup

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// Class is pods with equal requirements: each can take the place of any other.
type Class struct {
	Sig      int              // index into Queue.Signatures
	Profile  int              // index into Queue.Topology.Profiles
	Ask      resources.Vector // of one pod
	Amounts  resources.Amounts
	Ports    []cluster.HostPort
	Lists    []int // the list of its host ports, by number in Queue.Ports; empty if it has none
	Priority int32
	Pods     []*cluster.Pod // by namespace, name and UID
}

// Signature is what pods require of a node besides room.
type Signature struct {
	Required    []requirements.Requirements // alternatives; empty: any node
	Preferred   []cluster.Preference        // the heaviest first
	Tolerations []requirements.Toleration
}

// Queue is the pods to schedule, grouped.
type Queue struct {
	Dims        resources.Dimensions // the resources that some pod requests
	Classes     []Class              // by priority, then the larger first
	Signatures  []Signature
	Topology    *topology.Index
	Ports       *Ports
	Unplannable []Unplannable
	Deferred    []*cluster.Pod // pods that must wait for another plan: their rules about other pods are too many for this one
	Omissions   []Omission     // preferences left out of pods in the classes

	unoffered map[string]bool // the resources that Unoffered stands for
}

// Omission is a pod of which some preferences about other pods are ignored, to limit the memory that a plan takes.
type Omission struct {
	Pod         *cluster.Pod
	Preferences int
}

// Unplannable is a pod whose spec is impossible or not supported, with the reason.
type Unplannable struct {
	Pod *cluster.Pod
	Why string
}

// New groups the pods of the snapshot. It does not know what instance types have: see NewFor.
func New(s cluster.Snapshot) *Queue { return NewFor(s, nil) }

// NewFor groups the pods of the snapshot. offered returns the extended resources that instance types have; it is called only if pods
// request more than 8 kinds of resources. Nil means unknown: then each resource keeps its own dimension.
func NewFor(s cluster.Snapshot, offered func() map[string]bool) *Queue {
	q := &Queue{Dims: dimensionsOf(s), Ports: &Ports{}}
	q.collapse(s, offered)
	var key []byte
	sigs, classes := map[string]int{}, map[string]int{}
	wanted := make([]topology.PodRef, 0, len(s.Pods))
	for _, p := range sortedPods(s.Pods) {
		if wrong := unplannable(p); wrong != "" {
			q.Unplannable = append(q.Unplannable, Unplannable{Pod: p, Why: wrong})
			continue
		}
		if n := len(wanted); n > 0 && p.SharesDemands(wanted[n-1].Pod) {
			wanted = append(wanted, topology.PodRef{Pod: p, Nodes: wanted[n-1].Nodes})
			continue
		}
		key = signatureKey(key[:0], p)
		sig, ok := sigs[string(key)]
		if !ok {
			sig = len(q.Signatures)
			sigs[string(key)] = sig
			q.Signatures = append(q.Signatures, newSignature(p))
		}
		wanted = append(wanted, topology.PodRef{Pod: p, Nodes: sig})
	}
	q.Topology = topology.NewIndex(wanted, residentsOf(s), func() []*cluster.Kind { return kindsOf(s) })
	wanted = q.hold(wanted)
	of := make([]int, len(wanted)) // by pod: its class
	var counts []int
	for i, p := range wanted {
		if i > 0 && q.alike(wanted[i-1:i+1], q.Topology.Of[i-1:i+1]) {
			of[i] = of[i-1]
			counts[of[i]]++
			continue
		}
		profile := q.Topology.Of[i]
		key = classKey(key[:0], p.Nodes, profile, p.Pod)
		c, ok := classes[string(key)]
		if !ok {
			c = len(q.Classes)
			classes[string(key)] = c
			q.Classes, counts = append(q.Classes, Class{
				Sig: p.Nodes, Profile: profile, Ask: q.Ask(p.Requests), Amounts: p.Requests,
				Ports: p.HostPorts, Priority: p.Priority,
			}), append(counts, 0)
		}
		of[i] = c
		counts[c]++
	}
	pods := make([]*cluster.Pod, len(wanted))
	for c, n := range counts {
		q.Classes[c].Pods, pods = pods[:0:n], pods[n:]
	}
	for i, c := range of {
		q.Classes[c].Pods = append(q.Classes[c].Pods, wanted[i].Pod)
	}
	q.sort()
	for c := range q.Classes {
		if class := &q.Classes[c]; len(class.Ports) > 0 {
			class.Lists = []int{q.Ports.Number(class.Ports)}
		}
	}
	return q
}

// hold takes the pods out whose demands are too many for the book, and notes what it leaves out of those of others.
func (q *Queue) hold(wanted []topology.PodRef) []topology.PodRef {
	b, kept := q.Topology, 0
	if b.Deferred == nil {
		return wanted
	}
	for i, p := range wanted {
		if b.Deferred[i] {
			q.Deferred = append(q.Deferred, p.Pod)
			continue
		}
		if n := b.Omitted[i]; n > 0 {
			q.Omissions = append(q.Omissions, Omission{Pod: p.Pod, Preferences: n})
		}
		wanted[kept], b.Of[kept] = p, b.Of[i]
		kept++
	}
	b.Of = b.Of[:kept]
	return wanted[:kept]
}

// alike reports whether two pods are certainly of one class; it is enough that pods of one workload, which
// mostly come one after the other, are seen to be.
func (q *Queue) alike(pods []topology.PodRef, profiles []int) bool {
	a, b := pods[0].Pod, pods[1].Pod
	return pods[0].Nodes == pods[1].Nodes && profiles[0] == profiles[1] && a.Priority == b.Priority &&
		len(a.HostPorts) == 0 && len(b.HostPorts) == 0 && a.Requests.Equal(b.Requests)
}

// sort sorts the classes by priority, the highest first, then by amounts, the largest first.
func (q *Queue) sort() {
	order := make([]int, len(q.Classes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &q.Classes[a], &q.Classes[b]
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), y.Amounts.Compare(x.Amounts), a-b)
	})
	sorted := make([]Class, len(order))
	for i, c := range order {
		sorted[i] = q.Classes[c]
	}
	q.Classes = sorted
}

// Spreads reports whether some topology rule is over the label.
func (q *Queue) Spreads(key string) bool {
	return slices.ContainsFunc(q.Topology.Groups, func(g topology.Group) bool { return g.Key == key })
}

// dimensionsOf returns the resources that some pod requests: cpu, memory,
// ephemeral-storage and pods first, then the others by name.
func dimensionsOf(s cluster.Snapshot) resources.Dimensions {
	var common resources.Amounts // not 0 for each resource that some pod requests
	others := map[string]bool{}
	for i := range s.Pods {
		asks := &s.Pods[i].Requests
		common.CPU |= asks.CPU
		common.Memory |= asks.Memory
		common.EphemeralStorage |= asks.EphemeralStorage
		common.Pods |= asks.Pods
		for _, e := range asks.Extended {
			others[e.Name] = true
		}
	}
	return append(resources.Dimensions(common.Names()), slices.Sorted(maps.Keys(others))...)
}

// residentsOf returns the kinds of pods with required anti-affinity, each once: those on nodes, and DaemonSet pods.
func residentsOf(s cluster.Snapshot) []cluster.Resident {
	order := make([]*cluster.Node, len(s.Nodes))
	for i := range s.Nodes {
		order[i] = &s.Nodes[i]
	}
	slices.SortStableFunc(order, func(a, b *cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	seen := map[*cluster.Kind]bool{}
	var out []cluster.Resident
	for _, n := range order {
		for _, r := range n.Residents {
			if len(r.Avoids) > 0 && !seen[r.Kind] {
				seen[r.Kind] = true
				out = append(out, r)
			}
		}
	}
	daemons := slices.Clone(s.Daemons)
	slices.SortStableFunc(daemons, func(a, b cluster.Daemon) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, d := range daemons {
		if d.Kind != nil && len(d.Kind.Avoids) > 0 && !seen[d.Kind] {
			seen[d.Kind] = true
			out = append(out, cluster.Resident{Kind: d.Kind, Count: 1})
		}
	}
	return out
}

// kindsOf returns the kinds of the pods on nodes and of DaemonSet pods, each once.
func kindsOf(s cluster.Snapshot) []*cluster.Kind {
	seen := map[*cluster.Kind]bool{}
	var out []*cluster.Kind
	note := func(k *cluster.Kind) {
		if k != nil && !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	for i := range s.Nodes {
		for _, r := range s.Nodes[i].Residents {
			note(r.Kind)
		}
	}
	for i := range s.Daemons {
		note(s.Daemons[i].Kind)
	}
	return out
}

// sortedPods returns the pods by namespace, name and UID.
func sortedPods(pods []cluster.Pod) []*cluster.Pod {
	out := make([]*cluster.Pod, len(pods))
	for i := range pods {
		out[i] = &pods[i]
	}
	order := func(a, b *cluster.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	}
	if !slices.IsSortedFunc(out, order) {
		slices.SortFunc(out, order)
	}
	return out
}

// Count returns the number of pods, including unplannable and deferred ones.
func (q *Queue) Count() int {
	n := len(q.Unplannable) + len(q.Deferred)
	for c := range q.Classes {
		n += len(q.Classes[c].Pods)
	}
	return n
}
