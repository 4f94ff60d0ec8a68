package verify

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// kind is a set of pods that rules do not distinguish: pods with the same labels in one namespace.
type kind struct {
	namespace string
	labels    requirements.Labels

	// The rules that count or match the pods: indices in the fields of ruleSet with these names, ascending.
	spreads, affinities, antiAffinities []int
}

// class is a set of pods of one kind that have the same rules.
type class struct {
	kind     int          // index in ruleSet.kinds
	pod      *cluster.Pod // one of the pods
	uses     []spreadUse  // the spread rules of the pods
	affinity int          // index in ruleSet.affinities of the pods' affinity, or -1
	self     bool         // the affinity matches the pods themselves
	avoids   []int        // indices in ruleSet.antiAffinities of the pods' anti-affinity terms, ascending
}

// isFree reports whether the pods have no rules about other pods except anti-affinity.
func (c *class) isFree() bool { return len(c.uses) == 0 && c.affinity < 0 }

// ruleSet has all rules between pods, each once, and the classes of the plan's pods.
type ruleSet struct {
	facts *placeFacts

	kinds   []kind
	classes []class
	classOf map[*cluster.Pod]int // index in classes

	spreads        []*spreadRule
	affinities     []*affinityRule
	antiAffinities []*antiAffinityRule

	// By identity: index in kinds, classes, spreads, affinities, antiAffinities.
	byKind, byClass, bySpread, byAffinity, byAntiAffinity map[string]int

	kindOf map[*cluster.PodKind]int // by kind of residents or DaemonSet pods: index in kinds
}

// newRuleSet collects the rules of all pods, of the residents of nodes and of DaemonSet pods.
func newRuleSet(c *checker) *ruleSet {
	rs := &ruleSet{
		classOf: make(map[*cluster.Pod]int, len(c.snapshot.Pods)), kindOf: map[*cluster.PodKind]int{},
		byKind: map[string]int{}, byClass: map[string]int{}, bySpread: map[string]int{},
		byAffinity: map[string]int{}, byAntiAffinity: map[string]int{},
	}
	relevant, byName := relevantLabels(&c.snapshot)
	rs.facts = newPlaceFacts(c, relevant, byName)
	for i := range c.snapshot.Pods {
		p := &c.snapshot.Pods[i]
		rs.classOf[p] = rs.classIndex(p)
	}
	for i := range c.snapshot.Nodes {
		for _, r := range c.snapshot.Nodes[i].Residents {
			rs.addKind(r.PodKind)
		}
	}
	for i := range c.snapshot.Daemons {
		rs.addKind(c.snapshot.Daemons[i].Kind)
	}
	rs.matchKinds()
	for i := range c.snapshot.Nodes {
		for _, r := range c.snapshot.Nodes[i].Residents {
			rs.addResident(rs.facts.withAllTraits(i), r)
		}
	}
	for _, d := range rs.facts.daemonPods {
		rs.addDaemonPod(d)
	}
	rs.relyOnDaemonPods(c)
	return rs
}

// relevantLabels returns the labels that matter for rules between pods. These are the labels in the rules, and the
// labels in the node affinity of pods with spread constraints, because these constraints honor node affinity. byName
// is true if such a node affinity selects nodes by name.
func relevantLabels(s *cluster.Snapshot) (keys []string, byName bool) {
	seen := map[string]bool{}
	addTerms := func(list []cluster.Term) {
		for i := range list {
			seen[list[i].Key] = true
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		addTerms(p.Affinity)
		addTerms(p.AntiAffinity)
		spreads := hardSpreads(p)
		for _, spread := range spreads {
			seen[spread.Key] = true
		}
		if len(spreads) == 0 {
			continue
		}
		for _, r := range p.Required {
			for key := range r {
				seen[key] = true
				byName = byName || key == labelHostname
			}
		}
	}
	for i := range s.Nodes {
		for _, r := range s.Nodes[i].Residents {
			if r.PodKind != nil {
				addTerms(r.RequiredAntiAffinity)
			}
		}
	}
	for i := range s.Daemons {
		if k := s.Daemons[i].Kind; k != nil {
			addTerms(k.RequiredAntiAffinity)
		}
	}
	delete(seen, labelHostname)
	return slices.Sorted(maps.Keys(seen)), byName
}

// hardSpreads returns the spread constraints of the pod that are not ScheduleAnyway.
func hardSpreads(p *cluster.Pod) []*cluster.Spread {
	var out []*cluster.Spread
	for i := range p.Spread {
		if !p.Spread[i].Soft {
			out = append(out, &p.Spread[i])
		}
	}
	return out
}

func requiredTerms(terms []cluster.Term) []*cluster.Term {
	var out []*cluster.Term
	for i := range terms {
		if terms[i].Weight == 0 {
			out = append(out, &terms[i])
		}
	}
	return out
}

// classIndex returns the index of the pod's class. It adds the class, with its rules, if it is new.
func (rs *ruleSet) classIndex(p *cluster.Pod) int {
	spreads, affinity, antiAffinity := hardSpreads(p), requiredTerms(p.Affinity), requiredTerms(p.AntiAffinity)
	var w identity
	k := rs.kindIndex(p.Namespace, p.Labels)
	w.number(k)
	for _, s := range spreads {
		w.text(s.Key)
		w.number(s.MaxSkew)
		w.number(s.MinDomains)
		w.flag(s.IgnoresNodeAffinity)
		w.flag(s.HonorTaints)
		w.selector(s.Selector)
	}
	if len(spreads) > 0 {
		w.alternatives(p.Required)
		w.tolerations(p.Tolerations)
	}
	for _, terms := range [][]*cluster.Term{affinity, antiAffinity} {
		w.number(len(terms))
		for _, t := range terms {
			w.term(t)
		}
	}
	n, ok := rs.byClass[string(w)]
	if ok {
		return n
	}
	n = len(rs.classes)
	rs.byClass[string(w)] = n
	c := class{kind: k, pod: p, uses: rs.spreadUses(p, spreads), affinity: rs.affinityIndex(affinity)}
	c.self = c.affinity >= 0 && rs.affinities[c.affinity].counts(p.Namespace, p.Labels)
	c.avoids = rs.antiAffinityIndices(antiAffinity)
	rs.classes = append(rs.classes, c)
	return n
}

// kindIndex returns the index of the kind of pods with these labels in the namespace, which it adds if it is new.
func (rs *ruleSet) kindIndex(namespace string, labels requirements.Labels) int {
	var w identity
	w.text(namespace)
	w.labels(labels)
	n, ok := rs.byKind[string(w)]
	if !ok {
		n = len(rs.kinds)
		rs.byKind[string(w)] = n
		rs.kinds = append(rs.kinds, kind{namespace: namespace, labels: labels})
	}
	return n
}

// spreadUses returns the uses of spread rules for the spread constraints of the pod. A node counts for a constraint
// only if the node has the topology keys of all these constraints.
func (rs *ruleSet) spreadUses(p *cluster.Pod, spreads []*cluster.Spread) []spreadUse {
	var keys []string
	for _, s := range spreads {
		keys = append(keys, s.Key)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var out []spreadUse
	for _, s := range spreads {
		filter := nodeFilterOf(p, s, keys)
		var w identity
		w.text(p.Namespace)
		w.text(s.Key)
		w.selector(s.Selector)
		filter.identity(&w)
		n, ok := rs.bySpread[string(w)]
		if !ok {
			n = len(rs.spreads)
			rs.bySpread[string(w)] = n
			rs.spreads = append(rs.spreads, &spreadRule{
				key: s.Key, namespace: p.Namespace, selector: s.Selector, view: rs.facts.view(s.Key, filter),
			})
		}
		u := spreadUse{rule: n, maxSkew: s.MaxSkew, minDomains: s.MinDomains}
		if s.Selector.Matches(p.Labels) {
			u.self = 1
		}
		out = append(out, u)
	}
	return out
}

// affinityIndex returns the index of the rule with these terms, which it adds if it is new; -1 without terms.
func (rs *ruleSet) affinityIndex(terms []*cluster.Term) int {
	if len(terms) == 0 {
		return -1
	}
	var w identity
	for _, t := range terms {
		w.term(t)
	}
	n, ok := rs.byAffinity[string(w)]
	if !ok {
		n = len(rs.affinities)
		rs.byAffinity[string(w)] = n
		r := &affinityRule{terms: terms}
		for _, t := range terms {
			r.views = append(r.views, rs.facts.labelView(t.Key))
		}
		rs.affinities = append(rs.affinities, r)
	}
	return n
}

// antiAffinityIndex returns the index of the rule with this anti-affinity term. It adds the rule if it is new.
func (rs *ruleSet) antiAffinityIndex(t *cluster.Term) int {
	var w identity
	w.term(t)
	n, ok := rs.byAntiAffinity[string(w)]
	if !ok {
		n = len(rs.antiAffinities)
		rs.byAntiAffinity[string(w)] = n
		rs.antiAffinities = append(rs.antiAffinities, &antiAffinityRule{term: t})
	}
	return n
}

// antiAffinityIndices returns the indices of the rules with these anti-affinity terms, ascending, each once.
func (rs *ruleSet) antiAffinityIndices(terms []*cluster.Term) []int {
	var out []int
	for _, t := range terms {
		out = append(out, rs.antiAffinityIndex(t))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addKind adds the kind of residents or DaemonSet pods, and their anti-affinity terms; nil adds nothing.
func (rs *ruleSet) addKind(k *cluster.PodKind) {
	if _, ok := rs.kindOf[k]; ok || k == nil {
		return
	}
	rs.kindOf[k] = rs.kindIndex(k.Namespace, k.Labels)
	rs.antiAffinityIndices(requiredTerms(k.RequiredAntiAffinity))
}

// addResident adds the pods of a resident of a node to the rules that count them. Spread constraints do not count pods
// that are being deleted.
func (rs *ruleSet) addResident(at placeWithTraits, r cluster.Resident) {
	if r.PodKind == nil || r.Count <= 0 {
		return
	}
	k := &rs.kinds[rs.kindOf[r.PodKind]]
	placed := placedPods{placeWithTraits: at, pods: r.Count}
	if !r.Terminating {
		for _, n := range k.spreads {
			rs.spreads[n].residents = append(rs.spreads[n].residents, placed)
		}
	}
	for _, n := range k.affinities {
		rs.affinities[n].residents = append(rs.affinities[n].residents, placed)
	}
	rs.addConcerned(k, rs.antiAffinityIndices(requiredTerms(r.RequiredAntiAffinity)), concernedPods{
		placedPods: placed, name: "an existing pod of namespace " + r.Namespace,
	})
}

// relyOnDaemonPods handles planned nodes whose DaemonSet pods each start only with some of the node's offerings. If
// every offering has such a pod that an affinity counts, one pod is certain: the affinity rule gets one resident.
func (rs *ruleSet) relyOnDaemonPods(c *checker) {
	for _, r := range rs.affinities {
		for i := range r.daemonPods {
			place := r.daemonPods[i].place
			if i > 0 && r.daemonPods[i-1].place == place {
				continue
			}
			without := func(o *offer) bool { return counted(o.kinds, r.counts) == 0 }
			if !slices.ContainsFunc(c.places[place].offers, without) {
				r.residents = append(r.residents, placedPods{placeWithTraits: rs.facts.withAllTraits(place), pods: 1})
			}
		}
	}
}

// addDaemonPod adds a DaemonSet pod to the rules that count it. An uncertain DaemonSet pod excludes other pods by
// anti-affinity, but satisfies no affinity.
func (rs *ruleSet) addDaemonPod(d daemonPod) {
	k := &rs.kinds[rs.kindOf[d.kind]]
	if len(k.spreads)+len(k.affinities)+len(k.antiAffinities)+len(d.kind.RequiredAntiAffinity) == 0 {
		return
	}
	if d.sure {
		rs.addResident(rs.facts.withAllTraits(d.place), cluster.Resident{PodKind: d.kind, Count: 1})
		return
	}
	placed := placedPods{placeWithTraits: d.placeWithTraits, pods: 1}
	for _, n := range k.spreads {
		rs.spreads[n].daemonPods = append(rs.spreads[n].daemonPods, placed)
	}
	for _, n := range k.affinities {
		rs.affinities[n].daemonPods = append(rs.affinities[n].daemonPods, placed)
	}
	rs.addConcerned(k, rs.antiAffinityIndices(requiredTerms(d.kind.RequiredAntiAffinity)), concernedPods{
		placedPods: placed, name: "a DaemonSet's pod of namespace " + d.kind.Namespace,
	})
}
