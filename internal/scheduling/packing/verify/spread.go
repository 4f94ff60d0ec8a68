package verify

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// placedPods is a number of pods on one place.
type placedPods struct {
	placeWithTraits
	pods int
}

// spreadRule is a spread constraint, shared by pods for which the same nodes count.
type spreadRule struct {
	key        string // topology key
	namespace  string // of the pods with the spread constraint
	selector   cluster.Selector
	view       *view
	residents  []placedPods // counted pods on nodes of the snapshot, and counted DaemonSet pods that certainly start
	daemonPods []placedPods // counted DaemonSet pods that may not start; those that do, start before all planned pods
}

// counts reports whether the rule counts pods with these labels in that namespace. A pod counts from its binding until
// its deletion starts. For an empty selector, kube-scheduler counts no pods on nodes. But the selector matches the pod
// to schedule, so spreadUse.self is 1.
func (r *spreadRule) counts(namespace string, labels map[string]string) bool {
	return namespace == r.namespace && (r.selector.MatchesNothing || len(r.selector.Labels) > 0) && r.selector.Matches(labels)
}

// spreadUse is a spread rule with the parameters of one class of pods.
type spreadUse struct {
	rule       int // index in ruleSet.spreads
	maxSkew    int
	minDomains int
	self       int // 1 if the selector matches the pods themselves, else 0
}

// spreadState has the numbers of pods of a spread rule by domain, during the simulated binding.
type spreadState struct {
	*spreadRule
	bounds       *bounds       // the domains that exist
	certain      *tally        // pods whose domain is certain
	maybe        map[int]int   // by domain: pods that may be in the domain, but may be elsewhere too
	loose        []map[int]int // pods whose domain is not certain: by index in bounds.loose, then by place
	leavingHosts int           // number of leaving hosts that still count, because pods stay on them
}

// initialState returns the state before a planned pod is bound: with the residents and the DaemonSet pods. gone is
// whether the leaving nodes are gone: then a leaving node counts only if pods stay on it.
func (r *spreadRule) initialState(gone bool) *spreadState {
	e := &spreadState{spreadRule: r, bounds: &r.view.bounds[0], maybe: map[int]int{}}
	if gone {
		e.bounds = &r.view.bounds[1]
	}
	byHost := r.key == labelHostname
	e.certain = newTally(e.bounds, byHost)
	for range e.bounds.loose {
		e.loose = append(e.loose, map[int]int{})
	}
	for _, s := range r.residents {
		at := r.view.reachOfPlace(s.place)
		if len(at.domains) == 0 || s.pods <= 0 {
			continue
		}
		if d := at.domains[0]; gone && r.view.isLeaving(r.view.facts.traitSetOf[s.place]) {
			// Pods stay on the leaving node, so it still counts.
			if byHost && e.certain.count[d] == 0 {
				e.certain.addDomain(d)
				e.leavingHosts++
			} else if !byHost && !e.certain.domains[d] {
				e.certain.addDomain(d)
			}
		}
		e.add(s.place, s.pods)
	}
	for _, s := range r.daemonPods {
		for _, d := range r.view.reachWithTraits(s.placeWithTraits).domains {
			e.maybe[d] += s.pods
		}
	}
	return e
}

// add counts n more pods on the place, or fewer if n is negative.
func (e *spreadState) add(place, n int) {
	r := e.view.reachOfPlace(place)
	if len(r.domains) == 0 {
		return
	}
	set := e.bounds.looseSetOf[e.view.facts.traitSetOf[place]]
	if set < 0 {
		e.certain.add(r.domains[0], n)
		return
	}
	e.loose[set][place] += n
	for _, d := range r.domains {
		e.maybe[d] += n
	}
}

// excess returns by how much one more pod on a place could exceed the maxSkew of the rule; 0 or less means that the
// rule holds. The result is the maximum over all offerings that planned nodes may be launched as. excess also returns
// the domain of that maximum. at is the reach of the place. place is -1 for a node that is not in the plan.
func (e *spreadState) excess(u spreadUse, at reach, place int) (most, domain int) {
	for i, d := range at.domains {
		n := e.certain.count[d] + e.maybe[d] + u.self
		skew := e.skew(n, d, place)
		if e.fewestDomains(d) < u.minDomains {
			skew = max(skew, n) // the minimum is taken as 0
		}
		if over := skew - u.maxSkew; i == 0 || over > most {
			most, domain = over, d
		}
	}
	return most, domain
}

// skew returns the maximum difference between n and the number of pods in the domain with the fewest pods. n is the
// number of pods in the given domain, including one more pod on the place.
func (e *spreadState) skew(n, domain, place int) int {
	except := -1
	if e.certain.byHost && place >= 0 || e.certain.domains[domain] {
		except = domain
	}
	most := n - e.certain.count[domain] - e.maybe[domain] // if there is no other domain
	if low, ok := e.certain.lowest(except); ok {
		most = n - low
	}
	for l := range e.bounds.loose {
		set := &e.bounds.loose[l]
		if !slices.ContainsFunc(set.domains, func(d int) bool { return d != domain && !e.certain.domains[d] }) {
			continue
		}
		// In the worst case, one planned node of the set is alone in its domain, and the other nodes of the set are
		// elsewhere.
		low, ok := e.fewestOnPlace(l, place)
		if !ok {
			continue
		}
		if slices.Contains(set.domains, domain) {
			low *= 2 // n also includes the pods of that node, which are in another domain: the skew is (n-low)-low
		}
		most = max(most, n-low)
	}
	return most
}

// fewestOnPlace returns the minimum number of pods on a place of the loose set with that index. It ignores the place
// whose number is except; -1 ignores no place. It returns false if there is no other place.
func (e *spreadState) fewestOnPlace(index, except int) (int, bool) {
	set, pods := &e.bounds.loose[index], e.loose[index]
	places := set.places
	if except >= 0 && e.bounds.looseSetOf[e.view.facts.traitSetOf[except]] == index {
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

// fewestDomains returns the minimum number of domains that may exist. It includes the given domain, except if the
// domains are hosts. It assumes that places of loose sets are in domains that exist anyway, if possible.
func (e *spreadState) fewestDomains(domain int) int {
	if e.certain.byHost {
		return e.bounds.sureHosts + e.leavingHosts
	}
	n := len(e.certain.domains)
	if !e.certain.domains[domain] {
		n++
	}
	for _, set := range e.bounds.loose {
		if set.sure && !slices.ContainsFunc(set.domains, func(d int) bool { return d == domain || e.certain.domains[d] }) {
			return n + 1
		}
	}
	return n
}

// anyCountMatters reports whether other pods may become bindable after a pod is bound in any domain. If it returns
// false, other pods may become bindable only after the lowest count has changed.
func (e *spreadState) anyCountMatters() bool { return len(e.bounds.loose) > 0 }

// describe returns a text about how one more pod on the place could violate the rule.
func (e *spreadState) describe(u spreadUse, place int) string {
	over, domain := e.excess(u, e.view.reachOfPlace(place), place)
	where := e.key + " " + e.view.axis.names[domain]
	if e.certain.byHost {
		where = "that host"
	}
	text := fmt.Sprintf(
		"its spread constraint allows %d more pods in %s than in the domain with the fewest, but the difference could be %d",
		u.maxSkew, where, over+u.maxSkew)
	if n := e.fewestDomains(domain); n < u.minDomains {
		text += fmt.Sprintf(", because there may be only %d of the %d domains that minDomains requires", n, u.minDomains)
	}
	return text
}
