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

// Class is a set of interchangeable pods: they have equal requirements.
type Class struct {
	Sig       int                // index into Queue.Signatures
	Profile   int                // index into Queue.Topology.Profiles
	Ask       resources.Vector   // requests of one pod, over Queue.Dims
	Amounts   resources.Amounts  // requests of one pod
	Ports     []cluster.HostPort // host ports of one pod; empty: none
	PortLists []int              // one element: the number that Queue.Ports gives the list Ports; empty: no host ports
	Priority  int32              // priority of the pods
	Pods      []*cluster.Pod     // the pods, sorted by namespace, name and UID
}

// Signature has the requirements and preferences of pods for nodes, except free resources and host ports.
type Signature struct {
	Required    []requirements.Requirements // alternatives; empty: any node
	Preferred   []cluster.Preference        // heaviest first
	Tolerations []requirements.Toleration   // tolerated taints; empty: none
}

// Queue has the pods to schedule, grouped into classes.
type Queue struct {
	Dims        resources.Dimensions // the resources that some pod requests
	Classes     []Class              // highest priority first, then largest first
	Signatures  []Signature          // each distinct signature once
	Topology    *topology.Index      // groups and profiles of the topology rules
	Ports       *Ports               // numbered lists of host ports
	Unplannable []Unplannable        // pods that cannot be planned; they are in no class
	Deferred    []*cluster.Pod       // pods that wait for another plan: too many rules about other pods; they are in no class
	Omissions   []Omission           // pods (in classes) whose preferences are partly ignored

	unoffered map[string]bool // the resources that the dimension Unoffered replaces
}

// Omission is a pod whose preferences about other pods are partly ignored, to limit the memory of a plan.
type Omission struct {
	Pod         *cluster.Pod // the pod, which is in a class
	Preferences int          // number of ignored preferences
}

// Unplannable is a pod whose spec is impossible or not supported, with the reason.
type Unplannable struct {
	Pod *cluster.Pod // the pod, which is in no class
	Why string       // the reason, as half a sentence about the pod
}

// New groups the pods of the snapshot, without knowledge of the resources of instance types; see NewFor.
func New(s cluster.Snapshot) *Queue { return NewFor(s, nil) }

// NewFor groups the pods of the snapshot. offered returns the extended resources that instance types have; NewFor calls
// it only if pods request more than maxUnoffered resources. If offered is nil, each resource has its own dimension.
func NewFor(s cluster.Snapshot, offered func() map[string]bool) *Queue {
	q := &Queue{Dims: dimensionsOf(s), Ports: &Ports{}}
	q.collapseUnoffered(s, offered)
	var key []byte
	sigs, classes := map[string]int{}, map[string]int{}
	wanted := make([]topology.PodRef, 0, len(s.Pods))
	for _, p := range sortedPods(s.Pods) {
		if why := unplannable(p); why != "" {
			q.Unplannable = append(q.Unplannable, Unplannable{Pod: p, Why: why})
			continue
		}
		if n := len(wanted); n > 0 && p.SharesConstraints(wanted[n-1].Pod) {
			wanted = append(wanted, topology.PodRef{Pod: p, Signature: wanted[n-1].Signature})
			continue
		}
		key = signatureKey(key[:0], p)
		sig, ok := sigs[string(key)]
		if !ok {
			sig = len(q.Signatures)
			sigs[string(key)] = sig
			q.Signatures = append(q.Signatures, newSignature(p))
		}
		wanted = append(wanted, topology.PodRef{Pod: p, Signature: sig})
	}
	q.Topology = topology.NewIndex(wanted, avoidingResidents(s), func() []*cluster.PodKind { return kindsOf(s) })
	wanted = q.withoutDeferred(wanted)
	classOf := make([]int, len(wanted)) // by index in wanted: the pod's class
	var counts []int                    // by class: number of pods
	for i, p := range wanted {
		if i > 0 && q.alike(wanted[i-1:i+1], q.Topology.ProfileOf[i-1:i+1]) {
			classOf[i] = classOf[i-1]
			counts[classOf[i]]++
			continue
		}
		profile := q.Topology.ProfileOf[i]
		key = classKey(key[:0], p.Signature, profile, p.Pod)
		c, ok := classes[string(key)]
		if !ok {
			c = len(q.Classes)
			classes[string(key)] = c
			q.Classes, counts = append(q.Classes, Class{
				Sig: p.Signature, Profile: profile, Ask: q.Ask(p.Requests), Amounts: p.Requests,
				Ports: p.HostPorts, Priority: p.Priority,
			}), append(counts, 0)
		}
		classOf[i] = c
		counts[c]++
	}
	pods := make([]*cluster.Pod, len(wanted)) // memory for the pods of all classes
	for c, n := range counts {
		q.Classes[c].Pods, pods = pods[:0:n], pods[n:]
	}
	for i, c := range classOf {
		q.Classes[c].Pods = append(q.Classes[c].Pods, wanted[i].Pod)
	}
	q.sort()
	for c := range q.Classes {
		if class := &q.Classes[c]; len(class.Ports) > 0 {
			class.PortLists = []int{q.Ports.Number(class.Ports)}
		}
	}
	return q
}

// withoutDeferred returns the pods that the index does not defer. It appends the deferred pods to q.Deferred, and
// appends the other pods with ignored preferences to q.Omissions.
func (q *Queue) withoutDeferred(wanted []topology.PodRef) []topology.PodRef {
	index, kept := q.Topology, 0
	if index.Deferred == nil {
		return wanted
	}
	for i, p := range wanted {
		if index.Deferred[i] {
			q.Deferred = append(q.Deferred, p.Pod)
			continue
		}
		if n := index.Omitted[i]; n > 0 {
			q.Omissions = append(q.Omissions, Omission{Pod: p.Pod, Preferences: n})
		}
		wanted[kept], index.ProfileOf[kept] = p, index.ProfileOf[i]
		kept++
	}
	index.ProfileOf = index.ProfileOf[:kept]
	return wanted[:kept]
}

// alike reports whether the two elements of pods are certainly of one class. profiles are the numbers of their
// profiles. alike may be false for equal pods: it only needs to recognize pods of one workload that are adjacent.
func (q *Queue) alike(pods []topology.PodRef, profiles []int) bool {
	a, b := pods[0].Pod, pods[1].Pod
	return pods[0].Signature == pods[1].Signature && profiles[0] == profiles[1] && a.Priority == b.Priority &&
		len(a.HostPorts) == 0 && len(b.HostPorts) == 0 && a.Requests.Equal(b.Requests)
}

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

// HasRuleOver reports whether some topology rule is over the label.
func (q *Queue) HasRuleOver(key string) bool {
	return slices.ContainsFunc(q.Topology.Groups, func(g topology.Group) bool { return g.Key == key })
}

// dimensionsOf returns the resources that some pod requests: cpu, memory,
// ephemeral-storage and pods first, then the others by name.
func dimensionsOf(s cluster.Snapshot) resources.Dimensions {
	var common resources.Amounts // an amount is nonzero if some pod requests the resource
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

// avoidingResidents returns one resident of each kind with required anti-affinity: pods on nodes, and DaemonSet pods.
func avoidingResidents(s cluster.Snapshot) []cluster.Resident {
	order := make([]*cluster.Node, len(s.Nodes))
	for i := range s.Nodes {
		order[i] = &s.Nodes[i]
	}
	slices.SortStableFunc(order, func(a, b *cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	seen := map[*cluster.PodKind]bool{}
	var out []cluster.Resident
	for _, n := range order {
		for _, r := range n.Residents {
			if len(r.RequiredAntiAffinity) > 0 && !seen[r.PodKind] {
				seen[r.PodKind] = true
				out = append(out, r)
			}
		}
	}
	daemons := slices.Clone(s.Daemons)
	slices.SortStableFunc(daemons, func(a, b cluster.Daemon) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, d := range daemons {
		if d.Kind != nil && len(d.Kind.RequiredAntiAffinity) > 0 && !seen[d.Kind] {
			seen[d.Kind] = true
			out = append(out, cluster.Resident{PodKind: d.Kind, Count: 1})
		}
	}
	return out
}

func kindsOf(s cluster.Snapshot) []*cluster.PodKind {
	seen := map[*cluster.PodKind]bool{}
	var out []*cluster.PodKind
	add := func(k *cluster.PodKind) {
		if k != nil && !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	for i := range s.Nodes {
		for _, r := range s.Nodes[i].Residents {
			add(r.PodKind)
		}
	}
	for i := range s.Daemons {
		add(s.Daemons[i].Kind)
	}
	return out
}

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
