package consolidation

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

const maxSingleBundles = 8 // number of nodes that replaceBundled plans one by one

// replaceBundled removes nodes whose pods all fit one cheaper new node or one node that stays. Earlier strategies keep
// a node that takes pods of a move, even if that move is dropped later. The nodes are planned together. If this plan
// gives no move and at most maxSingleBundles nodes may be removed, each node is planned alone, until there is a move.
// The plan for all nodes may put pods of several nodes on one new node, and the disruption budgets may forbid the
// removal of all these nodes.
func replaceBundled(s *search, order []int) []Move {
	s.arrivalOrder = smallFirst
	removable := s.p.withinLimits(order)
	x := s.newExtension(attempt{}, removable)
	x.replaceBundles(order)
	for i := 0; i < len(order) && i < maxSingleBundles && len(removable) <= maxSingleBundles && len(x.moves) == 0; i++ {
		if t := x.planBundled(order[i : i+1]); t != nil {
			x.acceptBest(*t)
		}
	}
	x.confirm(nil)
	return x.result()
}

// replaceBundles makes one plan for the removal of all nodes that may be removed, and accepts the best moves. The pods
// of several nodes may share a new node.
func (x *extension) replaceBundles(order []int) {
	t, noneRemoved := x.s.bundled, !slices.Contains(x.removed, true)
	if t == nil || !noneRemoved {
		if t = x.planBundled(order); t == nil {
			return
		}
	}
	if noneRemoved {
		x.s.bundled = t // the plan does not depend on the threshold
	}
	x.acceptBest(*t)
}

// planBundled plans the removal of all nodes of the order that may be removed, with the pods of each node as one
// bundle. It returns nil if no node may be removed.
func (x *extension) planBundled(order []int) *attempt {
	b := newBundles(x.p)
	t := attempt{removed: make([]bool, len(x.p.candidates))}
	var pods []cluster.Pod
	for _, c := range order {
		if x.isTaken(c) || x.removalsLeft(x.p.candidates[c].node.Pool) < 1 {
			continue
		}
		if pod, ok := b.bundle(c, x.p.candidates[c].node); ok {
			t.removed[c] = true
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	slices.SortFunc(pods, cluster.ComparePods)
	snapshot := x.seq.snapshotWith(t.removed)
	snapshot.Pods = pods
	t.plan = x.s.solve(snapshot)
	b.unbundle(&t.plan, x.p.candidates)
	return &t
}

const maxAlternatives = 8 // number of pairs of alternative requirements that andRequirements combines

// bundles represents all pods of a candidate as one pod, the bundle. If a node has room for a bundle, each pod of the
// bundle is schedulable there in any order. A plan of bundles packs less tightly, but it does not depend on the order
// in which kube-scheduler schedules the pods.
//
// A candidate has no bundle if one of its pods is constrained, or if another pod has anti-affinity with one of them.
type bundles struct {
	candidates map[string]int            // index of the candidate, by ID of its bundle
	avoids     []cluster.Term            // the required anti-affinity terms of all pods
	repelled   map[*cluster.PodKind]bool // cache of isRepelled
}

// bundleNamespace is the namespace of bundles. It is not a valid name of a namespace, and is sorted last.
const bundleNamespace = "~"

func newBundles(p *problem) *bundles {
	b := &bundles{candidates: map[string]int{}, repelled: map[*cluster.PodKind]bool{}}
	known := map[*cluster.PodKind]bool{}
	for i := range p.in.Snapshot.Nodes {
		for _, r := range p.in.Snapshot.Nodes[i].Residents {
			if !known[r.PodKind] {
				known[r.PodKind] = true
				b.avoids = append(b.avoids, r.RequiredAntiAffinity...)
			}
		}
	}
	for i := range p.in.Snapshot.Pods {
		for _, t := range p.in.Snapshot.Pods[i].AntiAffinity {
			if t.Weight == 0 {
				b.avoids = append(b.avoids, t)
			}
		}
	}
	return b
}

// bundle returns the bundle of candidate c, which is node n; false if it has none.
func (b *bundles) bundle(c int, n *cluster.Node) (cluster.Pod, bool) {
	out := cluster.Pod{Namespace: bundleNamespace, Name: n.Name, Node: n.Name}
	if len(n.Pods) == 0 || slices.ContainsFunc(n.Residents, func(r cluster.Resident) bool { return b.isRepelled(r.PodKind) }) {
		return out, false
	}
	for i := range n.Pods {
		p := &n.Pods[i]
		var possible bool
		if out.Required, possible = andRequirements(out.Required, p.Required); !possible || isConstrained(p) || p.Unplannable != "" {
			return out, false
		}
		if i == 0 {
			out.Tolerations = p.Tolerations
		}
		out.Tolerations = commonTolerations(out.Tolerations, p.Tolerations)
		out.Requests = out.Requests.Add(p.Requests)
	}
	b.candidates[out.ID()] = c
	return out, true
}

// isRepelled reports whether a pod has anti-affinity with pods of the kind.
func (b *bundles) isRepelled(k *cluster.PodKind) bool {
	out, known := b.repelled[k]
	if !known {
		out = slices.ContainsFunc(b.avoids, func(t cluster.Term) bool { return t.Matches(k.Namespace, k.Labels) })
		b.repelled[k] = out
	}
	return out
}

// andRequirements returns the combinations of the alternatives in both lists. An empty list accepts any node.
// andRequirements returns false if all combinations are contradictory or if there are too many.
func andRequirements(a, b []requirements.Requirements) ([]requirements.Requirements, bool) {
	switch {
	case len(b) == 0 || len(a) == len(b) && &a[0] == &b[0]: // equal pods share one list
		return a, true
	case len(a) == 0:
		return b, true
	case len(a)*len(b) > maxAlternatives:
		return nil, false
	}
	var out []requirements.Requirements
	for _, x := range a {
		for _, y := range b {
			if x.Conflict(y) == "" {
				out = append(out, x.And(y))
			}
		}
	}
	return out, len(out) > 0
}

func commonTolerations(a, b []requirements.Toleration) []requirements.Toleration {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(t requirements.Toleration) bool { return !slices.Contains(b, t) })
}

func (b *bundles) unbundle(plan *packing.Plan, all []candidate) {
	pods := func(id string) []string {
		c, ok := b.candidates[id]
		if !ok {
			return []string{id}
		}
		n := all[c].node
		out := make([]string, len(n.Pods))
		for i := range n.Pods {
			out[i] = n.Pods[i].ID()
		}
		return out
	}
	var placements []packing.Placement
	for _, p := range plan.Placements {
		for _, id := range pods(p.Pod) {
			placements = append(placements, packing.Placement{Pod: id, Node: p.Node})
		}
	}
	slices.SortFunc(placements, func(a, b packing.Placement) int { return strings.Compare(a.Pod, b.Pod) })
	plan.Placements = placements
	for i := range plan.Refusals {
		plan.Refusals[i].Pod = pods(plan.Refusals[i].Pod)[0] // one pod is enough to keep the node
	}
	for i := range plan.PlannedNodes {
		var ids []string
		for _, id := range plan.PlannedNodes[i].Pods {
			ids = append(ids, pods(id)...)
		}
		slices.Sort(ids)
		plan.PlannedNodes[i].Pods = ids
	}
}
