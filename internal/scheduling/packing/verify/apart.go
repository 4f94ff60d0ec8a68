package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// apartRule is an anti-affinity term, and the final location of the pods that it concerns. The order
// of binding makes no difference: of two pods that the term separates, kube-scheduler does not bind the
// second pod, because of its own rule or the rule of the first pod.
type apartRule struct {
	term     *cluster.Term
	view     *view
	standers []stander
	byDomain map[int][]int // indices into standers, by domain that their pods may be in
	crowd    map[int]crowd
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
	return slices.ContainsFunc(demanded(k.Avoids), same)
}

// stander is a number of pods of one class on one place.
type stander struct {
	standing
	who     string // one of them, for a sentence
	planned bool
	owner   bool // they have the term
	target  bool // the term matches them
}

// crowd has the numbers of pods that may be in one domain: pods with the term, and pods that the term matches.
type crowd struct{ owners, targets int }

// stand adds the pods to the terms that they have (avoids), and to the terms that match them.
func (b *book) stand(k *kind, avoids []int, s stander) {
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

// judge returns a sentence for each domain that a planned pod may share with another pod although the term
// separates them.
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

func (r *apartRule) domain(d, place int, places []place) string {
	if r.term.Key == labelHostname {
		return "of " + places[place].name
	}
	return r.view.axis.names[d]
}

// collides reports whether the domain may have another pod that the term separates from these pods.
func (r *apartRule) collides(s *stander, domain int) bool {
	c := r.crowd[domain]
	return s.owner && c.targets > itself(s.target) || s.target && c.owners > itself(s.owner)
}

// itself returns 1 if the pod itself is counted, 0 if not.
func itself(counted bool) int {
	if counted {
		return 1
	}
	return 0
}

func (r *apartRule) counterpart(s *stander, domain int) *stander {
	for _, i := range r.byDomain[domain] {
		o := &r.standers[i]
		if (o != s || o.pods > 1) && (s.owner && o.target || s.target && o.owner) {
			return o
		}
	}
	return s
}

// admits reports whether the current pods in a domain allow one more pod, which has the term (owner) or is matched by
// the term (target).
func (r *apartRule) admits(owner, target bool, domain int) bool {
	c := r.crowd[domain]
	return !(owner && c.targets > 0 || target && c.owners > 0)
}
