package verify

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// nearRule is all the affinity terms that a pod demands, together: only pods
// that every one of them matches count for any of them.
type nearRule struct {
	terms      []*cluster.Term
	views      []*view // by term
	residents  []standing
	daemonPods []standing // DaemonSet pods that may be there before all others: with them no pod is the first, and no pod can rely on them
}

func (r *nearRule) counts(namespace string, labels map[string]string) bool {
	for _, t := range r.terms {
		if !t.Matches(namespace, labels) {
			return false
		}
	}
	return true
}

// nearness is where the pods that a near rule counts stand at one moment.
type nearness struct {
	*nearRule
	pods  int           // on nodes that may have the label of one of the terms
	sure  []map[int]int // by term: pods by domain, those whose domain is certain
	place map[int]int   // pods by place

	maybe   int         // DaemonSet pods
	maybeAt map[int]int // and by place
}

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

// misses returns the first term, and domain, in which a pod on the place could have no matching pod,
// or false if it passes. at is the place's reach by term, place -1
// for a planned node that is not in the plan; self whether the terms match the pod itself.
func (n *nearness) misses(at func(term int) reach, place int, self bool) (term, domain int, bad bool) {
	if self && n.pods == 0 && n.maybe == n.maybeAt[place] {
		return 0, 0, false // the first of a series, or with a DaemonSet pod if it is not
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
