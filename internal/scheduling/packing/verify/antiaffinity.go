package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// antiAffinityRule is an anti-affinity term, with the final places of the pods that have the term or match it. The
// order of binding makes no difference: of two pods that the term separates, kube-scheduler never binds the second,
// because of the second pod's own rule or the first pod's rule.
type antiAffinityRule struct {
	term      *cluster.Term
	view      *view
	concerned []concernedPods   // the pods that have the term or match it
	byDomain  map[int][]int     // by domain: indices into concerned of the pods that may be in the domain
	podCounts map[int]podCounts // by domain
}

func (r *antiAffinityRule) counts(namespace string, labels map[string]string) bool {
	return r.term.Matches(namespace, labels)
}

// isTermOf reports whether pods of the kind have the term.
func (r *antiAffinityRule) isTermOf(k *cluster.PodKind) bool {
	same := func(t *cluster.Term) bool {
		var a, b identity
		a.term(t)
		b.term(r.term)
		return slices.Equal(a, b)
	}
	return slices.ContainsFunc(requiredTerms(k.RequiredAntiAffinity), same)
}

// concernedPods is a number of pods of one class on one place that an antiAffinityRule concerns.
type concernedPods struct {
	placedPods
	name    string // describes one of the pods, for a sentence
	planned bool   // the plan places the pods; false for pods on existing nodes and DaemonSet pods
	owner   bool   // the pods have the term
	target  bool   // the term matches the pods
}

// podCounts has the numbers of pods that may be in one domain: pods with the term, and pods that the term matches.
type podCounts struct{ owners, targets int }

// addConcerned adds pods of the kind to the rules whose terms they have and to the rules whose terms match them. avoids
// are the indices of the rules whose terms they have.
func (rs *ruleSet) addConcerned(k *kind, avoids []int, s concernedPods) {
	for _, n := range avoids {
		owners := s
		owners.owner = true
		_, owners.target = slices.BinarySearch(k.antiAffinities, n)
		rs.antiAffinities[n].concerned = append(rs.antiAffinities[n].concerned, owners)
	}
	for _, n := range k.antiAffinities {
		if !slices.Contains(avoids, n) {
			s.target = true
			rs.antiAffinities[n].concerned = append(rs.antiAffinities[n].concerned, s)
		}
	}
}

// countPods sets byDomain and podCounts: the pods that may be in each domain.
func (r *antiAffinityRule) countPods() {
	r.byDomain, r.podCounts = map[int][]int{}, map[int]podCounts{}
	for i, s := range r.concerned {
		for _, d := range r.view.reachWithTraits(s.placeWithTraits).domains {
			r.byDomain[d] = append(r.byDomain[d], i)
			c := r.podCounts[d]
			if s.owner {
				c.owners += s.pods
			}
			if s.target {
				c.targets += s.pods
			}
			r.podCounts[d] = c
		}
	}
}

// violations returns a sentence for each domain that a planned pod may share with another pod although the term
// separates the two.
func (r *antiAffinityRule) violations(places []place) []string {
	var out []string
	for _, d := range slices.Sorted(maps.Keys(r.byDomain)) {
		i := slices.IndexFunc(r.byDomain[d], func(i int) bool { return r.concerned[i].planned && r.collides(&r.concerned[i], d) })
		if i < 0 {
			continue
		}
		a := &r.concerned[r.byDomain[d][i]]
		b := r.counterpart(a, d)
		out = append(out, fmt.Sprintf("%s on %s and %s on %s may both be in %s %s, which anti-affinity rules out",
			a.name, places[a.place].name, b.name, places[b.place].name, r.term.Key, r.domainName(d, a.place, places)))
	}
	return out
}

// domainName returns the name of the domain in a sentence about a pod on the place.
func (r *antiAffinityRule) domainName(d, place int, places []place) string {
	if r.term.Key == labelHostname {
		return "of " + places[place].name
	}
	return r.view.axis.names[d]
}

// collides reports whether the domain may have another pod that the term separates from a pod of s. The pods of s are
// in the domain.
func (r *antiAffinityRule) collides(s *concernedPods, domain int) bool {
	c := r.podCounts[domain]
	return s.owner && c.targets > oneIf(s.target) || s.target && c.owners > oneIf(s.owner)
}

// oneIf returns by how much a pod itself contributes to a count: 1 if counted, else 0.
func oneIf(counted bool) int {
	if counted {
		return 1
	}
	return 0
}

// counterpart returns pods in the domain that the term separates from a pod of s. It returns s if the term only
// separates the pods of s from each other.
func (r *antiAffinityRule) counterpart(s *concernedPods, domain int) *concernedPods {
	for _, i := range r.byDomain[domain] {
		other := &r.concerned[i]
		if (other != s || other.pods > 1) && (s.owner && other.target || s.target && other.owner) {
			return other
		}
	}
	return s
}

// admits reports whether the term allows one more pod in a domain. owner is whether this pod has the term, target
// whether the term matches it.
func (r *antiAffinityRule) admits(owner, target bool, domain int) bool {
	c := r.podCounts[domain]
	return !(owner && c.targets > 0 || target && c.owners > 0)
}
