package verify

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// affinityRule has all required affinity terms of a pod. It counts only pods that all of the terms match, as
// kube-scheduler does.
type affinityRule struct {
	terms     []*cluster.Term
	views     []*view      // by term
	residents []placedPods // counted pods on nodes of the snapshot, and DaemonSet pods that certainly start

	// daemonPods are the counted DaemonSet pods that do not certainly start. If they start, they start before all
	// planned pods, so no planned pod is the first that the rule counts. If they do not start, no affinity can rely
	// on them.
	daemonPods []placedPods
}

// counts reports whether all terms match pods with these labels in that namespace.
func (r *affinityRule) counts(namespace string, labels map[string]string) bool {
	for _, t := range r.terms {
		if !t.Matches(namespace, labels) {
			return false
		}
	}
	return true
}

// affinityState has the numbers of pods that an affinityRule counts, during the simulated binding.
type affinityState struct {
	*affinityRule
	pods    int           // pods on nodes that may have the topology key of one of the terms
	sure    []map[int]int // by term and domain: pods whose domain is certain
	byPlace map[int]int   // pods by place

	maybe        int         // number of affinityRule.daemonPods, which may not exist
	maybeByPlace map[int]int // the same by place
}

// initialState returns the state before a planned pod is bound: with the residents and the DaemonSet pods.
func (r *affinityRule) initialState() *affinityState {
	n := &affinityState{affinityRule: r, byPlace: map[int]int{}, maybeByPlace: map[int]int{}}
	for range r.terms {
		n.sure = append(n.sure, map[int]int{})
	}
	for _, s := range r.residents {
		n.add(s.place, s.pods)
	}
	for _, s := range r.daemonPods {
		if slices.ContainsFunc(n.views, func(v *view) bool { return len(v.reachWithTraits(s.placeWithTraits).domains) > 0 }) {
			n.maybe, n.maybeByPlace[s.place] = n.maybe+s.pods, n.maybeByPlace[s.place]+s.pods
		}
	}
	return n
}

// add counts more pods on the place, or fewer if pods is negative.
func (n *affinityState) add(place, pods int) {
	n.byPlace[place] += pods
	isCounted := false // the place may be in a domain of some term
	for i, v := range n.views {
		r := v.reachOfPlace(place)
		isCounted = isCounted || len(r.domains) > 0
		if d, ok := r.certain(); ok {
			n.sure[i][d] += pods
		}
	}
	if isCounted {
		n.pods += pods
	}
}

// unmetTerm returns the index of the first term for which a pod on the place may find no matching pod, and a domain
// without such a pod. unmet is false if there is no such term. at returns the reach of the place by term. place is -1
// for a node that is not in the plan. self is whether the terms match the pod itself.
func (n *affinityState) unmetTerm(at func(term int) reach, place int, self bool) (term, domain int, unmet bool) {
	if self && n.pods == 0 && n.maybe == n.maybeByPlace[place] {
		return 0, 0, false // the pod is the first that its affinity matches, or DaemonSet pods on its place match
	}
	for i := range n.terms {
		for _, d := range at(i).domains {
			if n.sure[i][d] == 0 && (place < 0 || n.byPlace[place] == 0) {
				return i, d, true
			}
		}
	}
	return 0, 0, false
}
