package verify

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// standing is a number of pods on one place.
type standing struct {
	spot
	pods int
}

// spreadRule is a spread constraint, shared by pods for which the same nodes count.
type spreadRule struct {
	key        string // topology key
	namespace  string // of the pods with the spread constraint
	selector   cluster.Selector
	view       *view
	residents  []standing // counted pods on nodes of the snapshot, and counted DaemonSet pods that certainly start
	daemonPods []standing // other counted DaemonSet pods, which may start before all planned pods
}

// counts reports whether the rule counts bound pods that are not being deleted,
// with these labels in that namespace. kube-scheduler counts no pods for an empty
// selector, although such a selector matches the new pod.
func (r *spreadRule) counts(namespace string, labels map[string]string) bool {
	return namespace == r.namespace && (r.selector.Nothing || len(r.selector.Labels) > 0) && r.selector.Matches(labels)
}

// use is a spread rule with the parameters of one class of pods.
type use struct {
	rule       int // index in book.spreads
	maxSkew    int
	minDomains int
	self       int // 1 if the selector matches the pods themselves, else 0
}

// evenness has the numbers of pods of a spread rule by domain, during the simulated binding.
type evenness struct {
	*spreadRule
	bounds *bounds       // the domains that exist
	even   *tally        // pods whose domain is certain
	maybe  map[int]int   // by domain: pods that may be in the domain, but may be elsewhere too
	loose  []map[int]int // by index in bounds.loose: the pods by place
	hosts  int           // number of leaving hosts that still count, because pods stay on them
}

// evenness returns the state before a planned pod is bound: with the residents and the DaemonSet pods. gone is false
// for the time before leaving nodes are gone, and true for the time after. Then a leaving node counts only if pods
// stay on it.
func (r *spreadRule) evenness(gone bool) *evenness {
	e := &evenness{spreadRule: r, bounds: &r.view.bounds[0], maybe: map[int]int{}}
	if gone {
		e.bounds = &r.view.bounds[1]
	}
	hosts := r.key == labelHostname
	e.even = newTally(e.bounds, hosts)
	for range e.bounds.loose {
		e.loose = append(e.loose, map[int]int{})
	}
	for _, s := range r.residents {
		at := r.view.at(s.place)
		if len(at.domains) == 0 || s.pods <= 0 {
			continue
		}
		if d := at.domains[0]; gone && r.view.leaving(r.view.ground.faceOf[s.place]) {
			if hosts && e.even.count[d] == 0 {
				e.even.create(d)
				e.hosts++
			} else if !hosts && !e.even.domains[d] {
				e.even.create(d)
			}
		}
		e.add(s.place, s.pods)
	}
	for _, s := range r.daemonPods {
		for _, d := range r.view.of(s.spot).domains {
			e.maybe[d] += s.pods
		}
	}
	return e
}

// add counts n more pods on the place, or fewer if n is negative.
func (e *evenness) add(place, n int) {
	r := e.view.at(place)
	if len(r.domains) == 0 {
		return
	}
	set := e.bounds.looseSetOf[e.view.ground.faceOf[place]]
	if set < 0 {
		e.even.add(r.domains[0], n)
		return
	}
	e.loose[set][place] += n
	for _, d := range r.domains {
		e.maybe[d] += n
	}
}

// excess returns by how much one more pod on a place could exceed the maxSkew of the rule: the maximum over all
// offerings that planned nodes may be launched as. It also returns the domain of that maximum. at is the reach of the
// place; place is -1 for a node that is not in the plan. 0 or less means that the rule holds.
func (e *evenness) excess(u use, at reach, place int) (most, domain int) {
	for i, d := range at.domains {
		n := e.even.count[d] + e.maybe[d] + u.self
		skew := e.skew(n, d, place)
		if e.fewestDomains(d) < u.minDomains {
			skew = max(skew, n)
		}
		if over := skew - u.maxSkew; i == 0 || over > most {
			most, domain = over, d
		}
	}
	return most, domain
}

// skew returns the maximum difference between n, the pods in a domain including one more on the place, and the pods in
// the domain with the fewest.
func (e *evenness) skew(n, domain, place int) int {
	except := -1
	if e.even.hosts && place >= 0 || e.even.domains[domain] {
		except = domain
	}
	most := n - e.even.count[domain] - e.maybe[domain]
	if low, ok := e.even.lowest(except); ok {
		most = n - low
	}
	for l := range e.bounds.loose {
		set := &e.bounds.loose[l]
		if !slices.ContainsFunc(set.domains, func(d int) bool { return d != domain && !e.even.domains[d] }) {
			continue
		}
		// In the worst case, one planned node of the set is alone in its domain, and the others are elsewhere.
		low, ok := e.fewestOnPlace(l, place)
		if !ok {
			continue
		}
		if slices.Contains(set.domains, domain) {
			low *= 2 // n includes the pods of that planned node, which then are not in the given domain
		}
		most = max(most, n-low)
	}
	return most
}

// fewestOnPlace returns the minimum number of pods on a place of the loose set with that index, ignoring the place
// except (-1: none). It returns false if there is no other place.
func (e *evenness) fewestOnPlace(index, except int) (int, bool) {
	set, pods := &e.bounds.loose[index], e.loose[index]
	places := set.places
	if except >= 0 && e.bounds.looseSetOf[e.view.ground.faceOf[except]] == index {
		places--
	}
	if places <= 0 {
		return 0, false
	}
	low, listed := 0, 0 // listed: places with an entry in pods; the others have no pods
	for p, n := range pods {
		if p == except {
			continue
		}
		if listed++; listed == 1 || n < low {
			low = n
		}
	}
	if listed < places {
		return min(low, 0), true
	}
	return low, true
}

// fewestDomains returns the minimum number of domains that may exist, including the given domain, unless the domains
// are hosts. It assumes that places of loose sets are in domains that exist anyway, if possible.
func (e *evenness) fewestDomains(domain int) int {
	if e.even.hosts {
		return e.bounds.least + e.hosts
	}
	n := len(e.even.domains)
	if !e.even.domains[domain] {
		n++
	}
	for _, set := range e.bounds.loose {
		if set.sure && !slices.ContainsFunc(set.domains, func(d int) bool { return d == domain || e.even.domains[d] }) {
			return n + 1
		}
	}
	return n
}

// anyCountMatters reports whether one more pod in any domain may allow other pods. Otherwise only a change of the
// lowest count can.
func (e *evenness) anyCountMatters() bool { return len(e.bounds.loose) > 0 }

// describe returns a text about how one more pod on the place could violate the rule.
func (e *evenness) describe(u use, place int) string {
	over, domain := e.excess(u, e.view.at(place), place)
	where := e.key + " " + e.view.axis.names[domain]
	if e.even.hosts {
		where = "that host"
	}
	text := fmt.Sprintf("its spread constraint allows %d more pods in %s than in the domain with the fewest, but the difference could be %d",
		u.maxSkew, where, over+u.maxSkew)
	if n := e.fewestDomains(domain); n < u.minDomains {
		text += fmt.Sprintf(", because there may be only %d of the %d domains that minDomains requires", n, u.minDomains)
	}
	return text
}
