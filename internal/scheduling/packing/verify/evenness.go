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
	key        string
	namespace  string
	selector   cluster.Selector
	view       *view
	residents  []standing // counted pods on nodes of the snapshot
	daemonPods []standing // counted DaemonSet pods that may start before all planned pods
}

// counts reports whether the rule counts bound pods that are not being deleted,
// with these labels in that namespace. kube-scheduler counts no pods for an empty
// selector, although such a selector matches the new pod.
func (r *spreadRule) counts(namespace string, labels map[string]string) bool {
	return namespace == r.namespace && (r.selector.Nothing || len(r.selector.Labels) > 0) && r.selector.Matches(labels)
}

// use is a spread rule with the parameters of one class of pods.
type use struct {
	rule       int
	maxSkew    int
	minDomains int
	self       int // 1 if the selector matches the pods themselves
}

// evenness has the numbers of pods of a spread rule by domain, during the simulated binding.
type evenness struct {
	*spreadRule
	bounds *bounds
	even   *tally        // pods whose domain is certain
	maybe  map[int]int   // by domain: pods that may be there
	loose  []map[int]int // by loose set: pods by place
	hosts  int           // number of leaving hosts that still count, because pods stay there
}

// evenness returns the state with only the residents. gone is false for the time before leaving nodes are gone, and true
// for the time after; then a leaving node counts only if pods stay on it.
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
	lot := e.bounds.byLot[e.view.ground.faceOf[place]]
	if lot < 0 {
		e.even.add(r.domains[0], n)
		return
	}
	e.loose[lot][place] += n
	for _, d := range r.domains {
		e.maybe[d] += n
	}
}

// excess returns the maximum by which one more pod on a place with the reach at could
// exceed the maxSkew of the rule, over all offerings that planned nodes may be launched as, and the domain of that
// maximum. 0 or less means that the rule holds. place is -1 for a node that is not in the plan.
func (e *evenness) excess(u use, at reach, place int) (most, domain int) {
	for i, d := range at.domains {
		n := e.even.count[d] + e.maybe[d] + u.self
		skew := e.skew(n, d, place)
		if e.fewest(d) < u.minDomains {
			skew = max(skew, n)
		}
		if over := skew - u.maxSkew; i == 0 || over > most {
			most, domain = over, d
		}
	}
	return most, domain
}

// skew returns the maximum difference between n pods in a domain and the pods in the domain with the fewest.
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
		low, ok := e.fewestOf(l, place)
		if !ok {
			continue
		}
		if slices.Contains(set.domains, domain) {
			low *= 2 // in that case its pods are also not in the given domain
		}
		most = max(most, n-low)
	}
	return most
}

// fewestOf returns the minimum number of pods on a place of the loose set, ignoring one place.
func (e *evenness) fewestOf(lot, except int) (int, bool) {
	set, pods := &e.bounds.loose[lot], e.loose[lot]
	places := set.places
	if except >= 0 && e.bounds.byLot[e.view.ground.faceOf[except]] == lot {
		places--
	}
	if places <= 0 {
		return 0, false
	}
	low, listed := 0, 0
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

// fewest returns the minimum number of domains that may exist, including the given domain. It assumes that loose
// places are in domains that exist anyway, if possible.
func (e *evenness) fewest(domain int) int {
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

// restless reports whether a change of any count may allow a pod. Otherwise only a change of the lowest
// count can.
func (e *evenness) restless() bool { return len(e.bounds.loose) > 0 }

// describe returns how one more pod on the place would violate the rule.
func (e *evenness) describe(u use, place int) string {
	over, domain := e.excess(u, e.view.at(place), place)
	where := e.key + " " + e.view.axis.names[domain]
	if e.even.hosts {
		where = "that host"
	}
	said := fmt.Sprintf("its spread constraint allows %d more pods in %s than in the domain with the fewest, but the difference could be %d",
		u.maxSkew, where, over+u.maxSkew)
	if n := e.fewest(domain); n < u.minDomains {
		said += fmt.Sprintf(", because there may be only %d of the %d domains that minDomains requires", n, u.minDomains)
	}
	return said
}
