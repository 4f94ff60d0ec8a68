package consolidation

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// sequence is the state of the cluster while candidates are removed one after the other. The candidates that are passed
// to newSequence are terminating from the start, so that no pod moves to a node that may be removed later. The pods of
// a candidate stay its residents until the candidate is removed.
type sequence struct {
	s        *search
	p        *problem
	current  cluster.Snapshot        // after the removals so far; without pending pods after start
	nodes    map[string]int          // index into current.Nodes, by name
	podByID  map[string]*cluster.Pod // pods of candidates and pending pods
	launched int                     // number of launched nodes
}

// newSequence returns the state before the first removal. The candidates in removable are terminating, so they get no
// pods.
func newSequence(s *search, removable []int) *sequence {
	r := &sequence{s: s, p: s.p, current: s.p.in.Snapshot, nodes: map[string]int{}, podByID: map[string]*cluster.Pod{}}
	r.current.Nodes, r.current.Pools = slices.Clone(r.current.Nodes), slices.Clone(r.current.Pools)
	for _, c := range removable {
		r.current.Nodes[s.p.candidates[c].at].Leaving = true
	}
	for i := range r.current.Nodes {
		r.nodes[r.current.Nodes[i].Name] = i
	}
	for i := range s.p.pods {
		r.podByID[s.p.pods[i].pod.ID()] = &s.p.pods[i].pod
	}
	for i := range r.current.Pods {
		r.podByID[r.current.Pods[i].ID()] = &r.current.Pods[i]
	}
	return r
}

// start applies the first attempt, which places the pending pods, and removes these pods from the snapshot.
func (r *sequence) start(t attempt) {
	r.apply(t)
	r.current.Pods = nil
}

// snapshotWith returns the current snapshot in which the candidates in gone are terminating and their pods are pending;
// gone has one entry per candidate. The result is valid until the next call of snapshotWith, search.snapshotWithout or
// search.scratch.
func (r *sequence) snapshotWith(gone []bool) cluster.Snapshot {
	out := r.s.scratch(r.current)
	for i, isGone := range gone {
		if isGone {
			out.Nodes[r.p.candidates[i].at] = r.p.candidates[i].drained
			r.p.removeFromPool(&out, &r.p.candidates[i])
		}
	}
	pods := append(r.s.scratchPods[:0], out.Pods...)
	for i := range r.p.pods {
		if gone[r.p.pods[i].candidate] {
			pods = append(pods, r.p.pods[i].pod)
		}
	}
	r.s.scratchPods, out.Pods = pods, pods
	return out
}

// apply applies the plan of an attempt: it removes the candidates, places the pods on their new nodes, and adds planned
// nodes as nodes without free room. The room left on a planned node is reserved for the move that launches the node:
// with pods of other moves on the node, the moves would depend on each other.
func (r *sequence) apply(t attempt) {
	for i, isRemoved := range t.removed {
		if isRemoved {
			r.current.Nodes[r.p.candidates[i].at] = r.p.candidates[i].drained
			r.p.removeFromPool(&r.current, &r.p.candidates[i])
		}
	}
	for _, p := range t.plan.Placements {
		if pod, from := r.pod(p.Pod); pod != nil {
			n := &r.current.Nodes[r.nodes[p.Node]]
			n.Requested = n.Requested.Add(pod.Requests)
			n.HostPorts = append(slices.Clip(n.HostPorts), pod.HostPorts...)
			n.Residents = addResident(slices.Clone(n.Residents), pod, from)
		}
	}
	for i := range t.plan.PlannedNodes {
		r.launch(&t.plan.PlannedNodes[i])
	}
}

// pod returns the pod with the ID, or nil if the pod is unknown. It also returns the node that the pod comes from, or
// nil for a pending pod.
func (r *sequence) pod(id string) (*cluster.Pod, *cluster.Node) {
	if c, ok := r.p.byPod[id]; ok {
		return r.podByID[id], r.p.candidates[c].node
	}
	return r.podByID[id], nil
}

func (r *sequence) launch(m *packing.PlannedNode) {
	r.launched++
	n := cluster.Node{
		Name: fmt.Sprintf("~%d", r.launched), // not a valid name of a Node, and sorted last
		Pool: m.Pool, NodeClass: m.NodeClass, Taints: m.Taints, Labels: commonLabels(m),
		Allocatable: m.Requests, Requested: m.Requests,
	}
	n.Claim = n.Name
	for _, t := range r.p.in.Market.Types(m.NodeClass, m.Pool) {
		if t.Name == m.Offerings[0].InstanceType {
			n.Capacity = t.Capacity
		}
	}
	for _, id := range m.Pods {
		if pod, from := r.pod(id); pod != nil {
			n.HostPorts = append(n.HostPorts, pod.HostPorts...)
			n.Residents = addResident(n.Residents, pod, from)
		}
	}
	if at, ok := r.p.pools[m.Pool]; ok {
		p := &r.current.Pools[at]
		p.Usage, p.Nodes = p.Usage.Add(n.Capacity), p.Nodes+1
	}
	r.nodes[n.Name] = len(r.current.Nodes)
	r.current.Nodes = append(r.current.Nodes, n)
}

// commonLabels returns the labels that the planned node has with each of its offerings.
func commonLabels(m *packing.PlannedNode) requirements.Labels {
	out := requirements.Labels{}
	maps.Copy(out, m.Labels)
	for _, r := range m.Requirements {
		if r.Operator == requirements.In && len(r.Values) == 1 {
			out[r.Key] = r.Values[0]
		}
	}
	first := m.Offerings[0]
	for key, of := range map[string]func(packing.Choice) string{
		catalog.LabelZone:         func(c packing.Choice) string { return c.Zone },
		catalog.LabelCapacityType: func(c packing.Choice) string { return c.CapacityType },
		catalog.LabelInstanceType: func(c packing.Choice) string { return c.InstanceType },
	} {
		if !slices.ContainsFunc(m.Offerings, func(c packing.Choice) bool { return of(c) != of(first) }) {
			out[key] = of(first)
		}
	}
	return out
}

// addResident adds the pod to the residents. from is the node that the pod comes from; nil for a pending pod. The
// residents of from include the pod's kind.
func addResident(residents []cluster.Resident, p *cluster.Pod, from *cluster.Node) []cluster.Resident {
	for i := range residents {
		if isOfKind(residents[i].PodKind, p) {
			residents[i].Count++
			return residents
		}
	}
	if from != nil {
		for _, known := range from.Residents {
			if isOfKind(known.PodKind, p) {
				return append(residents, cluster.Resident{PodKind: known.PodKind, Count: 1})
			}
		}
	}
	kind := &cluster.PodKind{Namespace: p.Namespace, Labels: p.Labels}
	for _, term := range p.AntiAffinity {
		if term.Weight == 0 {
			kind.RequiredAntiAffinity = append(kind.RequiredAntiAffinity, term)
		}
	}
	return append(residents, cluster.Resident{PodKind: kind, Count: 1})
}

// removeGroup removes the candidates of the group with one plan. If the plan refuses pods, their candidates stay, and
// the rest of the group is planned again. removeGroup returns the moves, and the candidates that stay.
func (r *sequence) removeGroup(group []int) ([]Move, []Stuck) {
	var stuck []Stuck
	for len(group) > 0 {
		t := attempt{removed: make([]bool, len(r.p.candidates))}
		for _, c := range group {
			t.removed[c] = true
		}
		t.plan = r.s.solve(r.snapshotWith(t.removed))
		refused := r.stuckNodes(t.plan)
		if len(refused) == 0 {
			r.apply(t)
			return r.p.splitIntoMoves(t), stuck
		}
		stuck = append(stuck, refused...)
		group = slices.DeleteFunc(slices.Clone(group), func(c int) bool {
			return slices.ContainsFunc(refused, func(s Stuck) bool { return s.Node == r.p.candidates[c].node.Name })
		})
	}
	return nil, stuck
}

func (r *sequence) stuckNodes(plan packing.Plan) []Stuck {
	var out []Stuck
	at := map[int]int{} // index into out, by candidate
	for _, refusal := range plan.Refusals {
		c, ok := r.p.byPod[refusal.Pod]
		if !ok {
			continue
		}
		i, known := at[c]
		if !known {
			i = len(out)
			at[c], out = i, append(out, Stuck{Node: r.p.candidates[c].node.Name, Refusal: refusal})
		}
		out[i].Pods++
	}
	return out
}
