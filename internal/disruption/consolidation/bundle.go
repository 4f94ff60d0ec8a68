package consolidation

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// mostAlternatives is how many alternatives of labels and taints the pods of a bundle may leave open together.
const maxAlternatives = 8

// bundles are all pods of a candidate as one pod. What has room for a bundle has room for each of its pods, in whatever order
// kube-scheduler deals them out: a plan of bundles packs less tightly, but does not depend on anybody's knowing of it.
//
// There are none of candidates with pods that have rules about others, or that others have rules about.
type bundles struct {
	of       map[string]int // by ID: the candidate
	avoids   []cluster.Term // all that keep pods off
	repelled map[*cluster.Kind]bool
}

// bundled are the bundles' namespace: no Namespace is called so, and they come last.
const bundled = "~"

func newBundles(s *search) *bundles {
	b := &bundles{of: map[string]int{}, repelled: map[*cluster.Kind]bool{}}
	known := map[*cluster.Kind]bool{}
	for i := range s.p.in.Snapshot.Nodes {
		for _, r := range s.p.in.Snapshot.Nodes[i].Residents {
			if !known[r.Kind] {
				known[r.Kind] = true
				b.avoids = append(b.avoids, r.Avoids...)
			}
		}
	}
	for i := range s.p.in.Snapshot.Pods {
		for _, t := range s.p.in.Snapshot.Pods[i].AntiAffinity {
			if t.Weight == 0 {
				b.avoids = append(b.avoids, t)
			}
		}
	}
	return b
}

// tie returns the candidate's bundle, and false if there is none.
func (b *bundles) bundle(c int, n *cluster.Node) (cluster.Pod, bool) {
	out := cluster.Pod{Namespace: bundled, Name: n.Name, Node: n.Name}
	if len(n.Pods) == 0 || slices.ContainsFunc(n.Residents, func(r cluster.Resident) bool { return b.isRepelled(r.Kind) }) {
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
	b.of[out.ID()] = c
	return out, true
}

// isMinded reports whether anybody would keep pods of that kind off.
func (b *bundles) isRepelled(k *cluster.Kind) bool {
	out, known := b.repelled[k]
	if !known {
		out = slices.ContainsFunc(b.avoids, func(t cluster.Term) bool { return t.Matches(k.Namespace, k.Labels) })
		b.repelled[k] = out
	}
	return out
}

// both returns alternatives that are right for who asks for one of a, and for who asks for one of b. It reports whether there are any,
// and not too many.
func andRequirements(a, b []requirements.Requirements) ([]requirements.Requirements, bool) {
	switch {
	case len(b) == 0 || len(a) == len(b) && &a[0] == &b[0]:
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

// common returns the tolerations that are in both.
func commonTolerations(a, b []requirements.Toleration) []requirements.Toleration {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(t requirements.Toleration) bool { return !slices.Contains(b, t) })
}

// untie makes a plan for bundles one for their pods.
func (b *bundles) unbundle(plan *packing.Plan, all []candidate) {
	pods := func(id string) []string {
		c, ok := b.of[id]
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
		plan.Refusals[i].Pod = pods(plan.Refusals[i].Pod)[0]
	}
	for i := range plan.Machines {
		var ids []string
		for _, id := range plan.Machines[i].Pods {
			ids = append(ids, pods(id)...)
		}
		slices.Sort(ids)
		plan.Machines[i].Pods = ids
	}
}
