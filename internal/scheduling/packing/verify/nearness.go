package verify

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// nearRule has all required affinity terms of a pod. It counts only pods that all of the terms match, as kube-scheduler
// does.
type nearRule struct {
	terms      []*cluster.Term
	views      []*view    // by term
	residents  []standing // counted pods on nodes of the snapshot, and DaemonSet pods that certainly start
	daemonPods []standing // other counted DaemonSet pods, which may start first: then no planned pod is the first, but none can rely on them
}

// counts reports whether all terms match pods with these labels in that namespace.
func (r *nearRule) counts(namespace string, labels map[string]string) bool {
	for _, t := range r.terms {
		if !t.Matches(namespace, labels) {
			return false
		}
	}
	return true
}

// nearness has the numbers of pods that a nearRule counts, during the simulated binding.
type nearness struct {
	*nearRule
	pods  int           // pods on nodes that may have the topology key of one of the terms
	sure  []map[int]int // by term and domain: pods whose domain is certain
	place map[int]int   // pods by place

	maybe   int         // number of nearRule.daemonPods, which may not exist
	maybeAt map[int]int // the same by place
}

// nearness returns the state before a planned pod is bound: with the residents and the DaemonSet pods.
func (r *nearRule) nearness() *nearness {
	n := &nearness{nearRule: r, place: map[int]int{}, maybeAt: map[int]int{}}
	for range r.terms {
		n.sure = append(n.sure, map[int]int{})
	}
	for _, s := range r.residents {
		n.add(s.place, s.pods)
	}
	for _, s := range r.daemonPods {
		if slices.ContainsFunc(n.views, func(v *view) bool { return len(v.of(s.spot).domains) > 0 }) {
			n.maybe, n.maybeAt[s.place] = n.maybe+s.pods, n.maybeAt[s.place]+s.pods
		}
	}
	return n
}

// add counts more pods on the place, or fewer if pods is negative.
func (n *nearness) add(place, pods int) {
	n.place[place] += pods
	seen := false
	for i, v := range n.views {
		r := v.at(place)
		seen = seen || len(r.domains) > 0
		if d, ok := r.certain(); ok {
			n.sure[i][d] += pods
		}
	}
	if seen {
		n.pods += pods
	}
}

// misses returns the index of the first term, and a domain, for which a pod on the place could have no matching pod;
// bad is false if there is no such term. at returns the reach of the place by term. place is -1 for a node that is not
// in the plan. self is whether the terms match the pod itself.
func (n *nearness) misses(at func(term int) reach, place int, self bool) (term, domain int, bad bool) {
	if self && n.pods == 0 && n.maybe == n.maybeAt[place] {
		return 0, 0, false // the pod is the first that its affinity matches, or has a matching DaemonSet pod
	}
	for i := range n.terms {
		for _, d := range at(i).domains {
			if n.sure[i][d] == 0 && (place < 0 || n.place[place] == 0) {
				return i, d, true
			}
		}
	}
	return 0, 0, false
}
