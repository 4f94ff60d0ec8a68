package pending

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/topology"
)

// Class is a number of pods that ask for the same: any one can take the place of any other.
type Class struct {
	Sig      int             // index into Queue.Signatures
	Profile  int             // index into Queue.Book.Profiles
	Ask      capacity.Vector // of one pod
	Amounts  capacity.Amounts
	Ports    []cluster.HostPort
	Priority int32
	Pods     []*cluster.Pod // by namespace, name and UID
}

// Signature is what pods demand of a node besides room: all that have it share
// what is worked out from it.
type Signature struct {
	Required    []constraint.Requirements // alternatives; none: anything will do
	Preferred   []cluster.Preference      // the heaviest first
	Tolerations []constraint.Toleration
}

// Queue is the pods that need a place.
type Queue struct {
	Dims        capacity.Dimensions // the resources that some pod asks for
	Classes     []Class             // by priority, then the larger first
	Signatures  []Signature
	Book        *topology.Book
	Unplannable []Unplannable
}

// Unplannable is a pod that asks for what nobody could mean.
type Unplannable struct {
	Pod *cluster.Pod
	Why string
}

// New groups the pods of the snapshot.
func New(s cluster.Snapshot) *Queue {
	q := &Queue{Dims: dimensionsOf(s)}
	var key []byte
	sigs, classes := map[string]int{}, map[string]int{}
	wanted := make([]topology.Wanted, 0, len(s.Pods))
	for _, p := range sortedPods(s.Pods) {
		if wrong := unplannable(p); wrong != "" {
			q.Unplannable = append(q.Unplannable, Unplannable{Pod: p, Why: wrong})
			continue
		}
		if n := len(wanted); n > 0 && p.SharesDemands(wanted[n-1].Pod) {
			wanted = append(wanted, topology.Wanted{Pod: p, Nodes: wanted[n-1].Nodes})
			continue
		}
		key = signatureKey(key[:0], p)
		sig, ok := sigs[string(key)]
		if !ok {
			sig = len(q.Signatures)
			sigs[string(key)] = sig
			q.Signatures = append(q.Signatures, newSignature(p))
		}
		wanted = append(wanted, topology.Wanted{Pod: p, Nodes: sig})
	}
	q.Book = topology.NewBook(wanted, residentsOf(s))
	for i, p := range wanted {
		profile := q.Book.Of[i]
		key = classKey(key[:0], p.Nodes, profile, p.Pod)
		c, ok := classes[string(key)]
		if !ok {
			c = len(q.Classes)
			classes[string(key)] = c
			q.Classes = append(q.Classes, Class{
				Sig: p.Nodes, Profile: profile, Ask: q.Dims.Of(p.Requests), Amounts: p.Requests,
				Ports: p.HostPorts, Priority: p.Priority,
			})
		}
		q.Classes[c].Pods = append(q.Classes[c].Pods, p.Pod)
	}
	slices.SortStableFunc(q.Classes, func(a, b Class) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), b.Amounts.Compare(a.Amounts))
	})
	return q
}

// Spreads reports whether some pods keep to the domains of the label.
func (q *Queue) Spreads(key string) bool {
	return slices.ContainsFunc(q.Book.Groups, func(g topology.Group) bool { return g.Key == key })
}

// dimensionsOf returns the resources that some pod asks for: cpu, memory,
// ephemeral-storage and pods first, then the others by name.
func dimensionsOf(s cluster.Snapshot) capacity.Dimensions {
	var common capacity.Amounts // not 0 where somebody asks for something
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
	return append(capacity.Dimensions(common.Names()), slices.Sorted(maps.Keys(others))...)
}

// residentsOf returns the kinds of pods on the nodes, and of DaemonSets, that keep others away, each once.
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

// Count returns how many pods there are.
func (q *Queue) Count() int {
	n := len(q.Unplannable)
	for c := range q.Classes {
		n += len(q.Classes[c].Pods)
	}
	return n
}
