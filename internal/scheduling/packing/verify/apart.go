package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// apartRule is an anti-affinity term, and the final location of the pods that have the term or match it. The order of
// binding makes no difference: of two pods that the term separates, kube-scheduler does not bind the second pod,
// because of its own rule or the rule of the first pod.
type apartRule struct {
	term     *cluster.Term
	view     *view
	standers []stander     // the pods that have the term or match it
	byDomain map[int][]int // indices into standers, by domain that their pods may be in
	crowd    map[int]crowd // by domain
}

// counts reports whether the term matches pods with these labels in that namespace.
func (r *apartRule) counts(namespace string, labels map[string]string) bool {
	return r.term.Matches(namespace, labels)
}

// isOf reports whether pods of the kind have the term.
func (r *apartRule) isOf(k *cluster.Kind) bool {
	same := func(t *cluster.Term) bool {
		var a, b identity
		a.term(t)
		b.term(r.term)
		return slices.Equal(a, b)
	}
	return slices.ContainsFunc(requiredTerms(k.Avoids), same)
}

// stander is a number of pods of one class on one place, for one apartRule.
type stander struct {
	standing
	who     string // one of the pods, for a sentence
	planned bool   // the plan places the pods; false for pods on existing nodes and DaemonSet pods
	owner   bool   // the pods have the term
	target  bool   // the term matches the pods
}

// crowd has the numbers of pods that may be in one domain: pods with the term, and pods that the term matches.
type crowd struct{ owners, targets int }

// addStander adds pods of the kind to the terms that they have, avoids, and to the terms that match them.
func (b *book) addStander(k *kind, avoids []int, s stander) {
	for _, n := range avoids {
		own := s
		own.owner = true
		_, own.target = slices.BinarySearch(k.aparts, n)
		b.aparts[n].standers = append(b.aparts[n].standers, own)
	}
	for _, n := range k.aparts {
		if !slices.Contains(avoids, n) {
			s.target = true
			b.aparts[n].standers = append(b.aparts[n].standers, s)
		}
	}
}

// gather sets byDomain and crowd: the pods that may be in each domain.
func (r *apartRule) gather() {
	r.byDomain, r.crowd = map[int][]int{}, map[int]crowd{}
	for i, s := range r.standers {
		for _, d := range r.view.of(s.spot).domains {
			r.byDomain[d] = append(r.byDomain[d], i)
			c := r.crowd[d]
			if s.owner {
				c.owners += s.pods
			}
			if s.target {
				c.targets += s.pods
			}
			r.crowd[d] = c
		}
	}
}

// judge returns a sentence for each domain that a planned pod may share with another pod although the term separates
// the two.
func (r *apartRule) judge(places []place) []string {
	var out []string
	for _, d := range slices.Sorted(maps.Keys(r.byDomain)) {
		i := slices.IndexFunc(r.byDomain[d], func(i int) bool { return r.standers[i].planned && r.collides(&r.standers[i], d) })
		if i < 0 {
			continue
		}
		a := &r.standers[r.byDomain[d][i]]
		b := r.counterpart(a, d)
		out = append(out, fmt.Sprintf("%s on %s and %s on %s may both be in %s %s, which anti-affinity rules out",
			a.who, places[a.place].name, b.who, places[b.place].name, r.term.Key, r.domain(d, a.place, places)))
	}
	return out
}

// domain returns the name of the domain in a sentence about a pod on the place.
func (r *apartRule) domain(d, place int, places []place) string {
	if r.term.Key == labelHostname {
		return "of " + places[place].name
	}
	return r.view.axis.names[d]
}

// collides reports whether the domain may have a pod that the term separates from a pod of s, which is in the domain.
func (r *apartRule) collides(s *stander, domain int) bool {
	c := r.crowd[domain]
	return s.owner && c.targets > itself(s.target) || s.target && c.owners > itself(s.owner)
}

// itself returns the number by which a pod itself is included in a count: 1 if counted, else 0.
func itself(counted bool) int {
	if counted {
		return 1
	}
	return 0
}

// counterpart returns pods in the domain that the term separates from a pod of s; s itself if it separates its own
// pods.
func (r *apartRule) counterpart(s *stander, domain int) *stander {
	for _, i := range r.byDomain[domain] {
		other := &r.standers[i]
		if (other != s || other.pods > 1) && (s.owner && other.target || s.target && other.owner) {
			return other
		}
	}
	return s
}

// admits reports whether the pods in a domain allow one more pod. owner is whether this pod has the term, target
// whether the term matches it.
func (r *apartRule) admits(owner, target bool, domain int) bool {
	c := r.crowd[domain]
	return !(owner && c.targets > 0 || target && c.owners > 0)
}
