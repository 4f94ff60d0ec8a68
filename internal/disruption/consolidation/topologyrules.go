package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

const labelHostname = "kubernetes.io/hostname"

// followsRules reports whether the simulation follows all rules of the pod as kube-scheduler does: required spread over
// hosts or zones, and required anti-affinity to pods of the same host. Such pods need no planned node.
func followsRules(p *cluster.Pod) bool {
	return len(p.HostPorts) == 0 && len(p.Volumes) == 0 && p.Unplannable == "" &&
		!slices.ContainsFunc(p.Affinity, func(t cluster.Term) bool { return t.Weight == 0 }) &&
		!slices.ContainsFunc(p.AntiAffinity, func(t cluster.Term) bool { return t.Weight == 0 && t.Key != labelHostname }) &&
		!slices.ContainsFunc(p.Spread, func(s cluster.Spread) bool {
			return !s.Soft && s.Key != labelHostname && s.Key != catalog.LabelZone
		})
}

// ruleKey identifies a rule by its address, because equal pods share one copy of their rules. One of the pointers is
// nil.
type ruleKey struct {
	namespace string // of the pod
	spread    *cluster.Spread
	term      *cluster.Term
}

// ruleMatcher reports which pods a rule counts. It keeps the answers, because comparing labels takes most of the time of
// a simulation otherwise. Simulations that are clones share it.
type ruleMatcher struct {
	matches           func(namespace string, labels requirements.Labels) bool
	countsTerminating bool                      // pods that are being deleted count too
	kinds             map[*cluster.PodKind]bool // answers of matchesKind
	pods              map[*cluster.Pod]bool     // answers of matchesPod
}

// topologyRule counts the pods that a rule matches, by domain.
type topologyRule struct {
	matcher   *ruleMatcher
	label     string                // the domains are the values of this node label
	counts    func(n *simNode) bool // the node is in one of the rule's domains
	domains   []string              // by index into simulation.nodes: its domain; empty if the node does not count
	residents []int                 // by index into simulation.nodes: matching pods that were on the node from the start
	matched   map[string]int        // by domain: matching pods
	nodes     map[string]int        // by domain: number of nodes, cordoned and drained ones included
}

// domainOf returns the node's domain for a label; empty if the node has none.
func (s *simNode) domainOf(label string) string {
	value := s.labels[label]
	if label == labelHostname && value == "" {
		return s.name // a planned node has no hostname yet
	}
	return value
}

// violates reports whether the pod on the node would violate one of the pod's rules. See followsRules.
func (sim *simulation) violates(p *cluster.Pod, at int) bool {
	for i := range p.Spread {
		s := &p.Spread[i]
		if s.Soft {
			continue
		}
		r := sim.spreadRule(p, s)
		self := 0
		if r.matcher.matchesPod(p) {
			self = 1
		}
		if d := sim.nodes[at].domainOf(s.Key); d == "" || r.matched[d]+self-r.fewest(s.MinDomains) > s.MaxSkew {
			return true
		}
	}
	for i := range p.AntiAffinity {
		t := &p.AntiAffinity[i]
		if t.Weight == 0 && sim.termRule(p, t).matched[sim.nodes[at].domainOf(t.Key)] > 0 {
			return true
		}
	}
	return false
}

// fewest returns the smallest number of matching pods in a domain. A host that is being drained is a domain without
// matching pods, so it is 0 for hosts.
func (r *topologyRule) fewest(minDomains int) int {
	if r.label == labelHostname || len(r.nodes) < minDomains {
		return 0
	}
	least := -1
	for d := range r.nodes {
		if n := r.matched[d]; least < 0 || n < least {
			least = n
		}
	}
	return max(least, 0)
}

// spreadRule returns the counts of the pod's spread.
func (sim *simulation) spreadRule(p *cluster.Pod, s *cluster.Spread) *topologyRule {
	key := ruleKey{p.Namespace, s, nil}
	if r := sim.rules[key]; r != nil {
		return r
	}
	m := sim.matcher(key, func(namespace string, labels requirements.Labels) bool {
		return namespace == p.Namespace && s.Selector.Matches(labels)
	}, false)
	return sim.addRule(key, &topologyRule{matcher: m, label: s.Key,
		counts: func(n *simNode) bool {
			if _, bad := requirements.Untolerated(n.taints, p.Tolerations); bad && s.HonorTaints {
				return false
			}
			return s.IgnoresNodeAffinity || n.satisfies(p)
		}})
}

// termRule returns the counts of the pod's anti-affinity term.
func (sim *simulation) termRule(p *cluster.Pod, t *cluster.Term) *topologyRule {
	key := ruleKey{p.Namespace, nil, t}
	if r := sim.rules[key]; r != nil {
		return r
	}
	m := sim.matcher(key, t.Matches, true)
	return sim.addRule(key, &topologyRule{matcher: m, label: t.Key, counts: func(*simNode) bool { return true }})
}

func (sim *simulation) matcher(key ruleKey, matches func(string, requirements.Labels) bool, countsTerminating bool) *ruleMatcher {
	m := sim.matchers[key]
	if m == nil {
		m = &ruleMatcher{matches, countsTerminating, map[*cluster.PodKind]bool{}, map[*cluster.Pod]bool{}}
		sim.matchers[key] = m
	}
	return m
}

// addRule counts the pods that the rule matches on all nodes.
func (sim *simulation) addRule(key ruleKey, r *topologyRule) *topologyRule {
	r.matched, r.nodes = map[string]int{}, map[string]int{}
	for i := range sim.others {
		r.add(&sim.others[i])
	}
	r.domains, r.residents = nil, nil // the other nodes have no index
	for i := range sim.nodes {
		r.add(&sim.nodes[i])
	}
	sim.rules[key] = r
	return r
}

// add adds the pods of a node to the counts.
func (r *topologyRule) add(n *simNode) {
	domain, residents := "", 0
	if r.counts(n) {
		domain = n.domainOf(r.label)
	}
	if domain != "" {
		for _, k := range n.residents {
			if r.matcher.matchesKind(k.PodKind) {
				residents += k.Count
			}
		}
		r.nodes[domain]++
		if !n.cordoned {
			r.matched[domain] += residents
		}
		for _, p := range n.newPods {
			if r.matcher.matchesPod(p) {
				r.matched[domain]++
			}
		}
	}
	r.domains, r.residents = append(r.domains, domain), append(r.residents, residents)
}

// matchesKind reports whether the rule counts pods of the kind.
func (m *ruleMatcher) matchesKind(k *cluster.PodKind) bool {
	match, known := m.kinds[k]
	if !known {
		match = (m.countsTerminating || !k.Terminating) && m.matches(k.Namespace, k.Labels)
		m.kinds[k] = match
	}
	return match
}

// matchesPod reports whether the rule counts the pod.
func (m *ruleMatcher) matchesPod(p *cluster.Pod) bool {
	match, known := m.pods[p]
	if !known {
		match = m.matches(p.Namespace, p.Labels)
		m.pods[p] = match
	}
	return match
}

// satisfies reports whether the labels of the node satisfy the pod's node selector and required node affinity.
func (s *simNode) satisfies(p *cluster.Pod) bool {
	return len(p.Required) == 0 || slices.ContainsFunc(p.Required, func(r requirements.Requirements) bool { return r.Accepts(s.labels) })
}

// countResidents adds the residents of a node to the counts, or subtracts them if sign is -1.
func (sim *simulation) countResidents(at, sign int) {
	for _, r := range sim.rules {
		if d := r.domains[at]; d != "" {
			r.matched[d] += sign * r.residents[at]
		}
	}
	if len(sim.counts) > 0 {
		for _, r := range sim.nodes[at].residents {
			sim.countKind(r.PodKind, at, sign*r.Count)
		}
	}
}

// countPod adds a pod on a node to the counts, or subtracts it if sign is -1.
func (sim *simulation) countPod(p *cluster.Pod, at, sign int) {
	for _, r := range sim.rules {
		if d := r.domains[at]; d != "" && r.matcher.matchesPod(p) {
			r.matched[d] += sign
		}
	}
	if len(sim.counts) > 0 {
		if kind := sim.kinds.defaultSpreadKind(p); kind != nil {
			sim.countKind(kind, at, sign)
		}
	}
}
