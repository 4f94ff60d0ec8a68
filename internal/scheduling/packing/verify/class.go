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
	spreads   []int // indices in book.spreads of the rules that count the pods, ascending
	nears     []int // the same in book.nears
	aparts    []int // the same in book.aparts: the anti-affinity terms that match the pods
}

// class is a set of pods of one kind that have the same rules.
type class struct {
	kind   int          // index in book.kinds
	pod    *cluster.Pod // one of the pods
	uses   []use        // the spread rules of the pods
	near   int          // index in book.nears of the pods' affinity, or -1
	self   bool         // the affinity matches the pods themselves
	avoids []int        // indices in book.aparts of the pods' anti-affinity terms, ascending
}

// free reports whether the pods have no rules about other pods except anti-affinity.
func (c *class) free() bool { return len(c.uses) == 0 && c.near < 0 }

// book has all rules between pods, each once, and the classes of the plan's pods.
type book struct {
	ground *ground

	kinds   []kind
	classes []class
	classOf map[*cluster.Pod]int // index in classes

	spreads []*spreadRule
	nears   []*nearRule
	aparts  []*apartRule

	byKind, byClass, bySpread, byNear, byApart map[string]int        // by identity: index in kinds, classes, spreads, nears, aparts
	kindOf                                     map[*cluster.Kind]int // index in kinds, of residents and DaemonSet pods
}

// newBook collects the rules of all pods, of the residents of nodes and of DaemonSet pods.
func newBook(c *checker) *book {
	b := &book{
		classOf: make(map[*cluster.Pod]int, len(c.snapshot.Pods)), kindOf: map[*cluster.Kind]int{},
		byKind: map[string]int{}, byClass: map[string]int{}, bySpread: map[string]int{},
		byNear: map[string]int{}, byApart: map[string]int{},
	}
	relevant, named := relevantLabels(&c.snapshot)
	b.ground = newGround(c, relevant, named)
	for i := range c.snapshot.Pods {
		p := &c.snapshot.Pods[i]
		b.classOf[p] = b.class(p)
	}
	for i := range c.snapshot.Nodes {
		for _, r := range c.snapshot.Nodes[i].Residents {
			b.addKind(r.Kind)
		}
	}
	for i := range c.snapshot.Daemons {
		b.addKind(c.snapshot.Daemons[i].Kind)
	}
	b.match()
	for i := range c.snapshot.Nodes {
		for _, r := range c.snapshot.Nodes[i].Residents {
			b.addResident(b.ground.spot(i), r)
		}
	}
	for _, g := range b.ground.daemonPods {
		b.addDaemonPod(g)
	}
	b.relyOnDaemonPods(c)
	return b
}

// relevantLabels returns the labels that matter for rules between pods: the labels in these rules and, because
// spread constraints honor node affinity, the labels in the node affinity of pods with spread constraints.
// named reports whether such a node affinity selects a node by name.
func relevantLabels(s *cluster.Snapshot) (keys []string, named bool) {
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
				named = named || key == labelHostname
			}
		}
	}
	for i := range s.Nodes {
		for _, r := range s.Nodes[i].Residents {
			if r.Kind != nil {
				addTerms(r.Avoids)
			}
		}
	}
	for i := range s.Daemons {
		if k := s.Daemons[i].Kind; k != nil {
			addTerms(k.Avoids)
		}
	}
	delete(seen, labelHostname)
	return slices.Sorted(maps.Keys(seen)), named
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

// requiredTerms returns the terms that are not preferences.
func requiredTerms(terms []cluster.Term) []*cluster.Term {
	var out []*cluster.Term
	for i := range terms {
		if terms[i].Weight == 0 {
			out = append(out, &terms[i])
		}
	}
	return out
}

// class returns the index of the pod's class. It adds the class, with its rules, if it is new.
func (b *book) class(p *cluster.Pod) int {
	spreads, near, apart := hardSpreads(p), requiredTerms(p.Affinity), requiredTerms(p.AntiAffinity)
	var w identity
	kind := b.kind(p.Namespace, p.Labels)
	w.number(kind)
	for _, s := range spreads {
		w.text(s.Key)
		w.number(s.MaxSkew)
		w.number(s.MinDomains)
		w.flag(s.AnyNode)
		w.flag(s.HonorTaints)
		w.selector(s.Selector)
	}
	if len(spreads) > 0 {
		w.alternatives(p.Required)
		w.tolerations(p.Tolerations)
	}
	for _, terms := range [][]*cluster.Term{near, apart} {
		w.number(len(terms))
		for _, t := range terms {
			w.term(t)
		}
	}
	n, ok := b.byClass[string(w)]
	if ok {
		return n
	}
	n = len(b.classes)
	b.byClass[string(w)] = n
	c := class{kind: kind, pod: p, uses: b.uses(p, spreads), near: b.near(near)}
	c.self = c.near >= 0 && b.nears[c.near].counts(p.Namespace, p.Labels)
	c.avoids = b.avoids(apart)
	b.classes = append(b.classes, c)
	return n
}

// kind returns the index of the kind of pods with these labels in the namespace. It adds the kind if it is new.
func (b *book) kind(namespace string, labels requirements.Labels) int {
	var w identity
	w.text(namespace)
	w.labels(labels)
	n, ok := b.byKind[string(w)]
	if !ok {
		n = len(b.kinds)
		b.byKind[string(w)] = n
		b.kinds = append(b.kinds, kind{namespace: namespace, labels: labels})
	}
	return n
}

// uses returns the spread constraints of the pod. A node counts for one of them only if it has the labels of all of
// them.
func (b *book) uses(p *cluster.Pod, spreads []*cluster.Spread) []use {
	var keys []string
	for _, s := range spreads {
		keys = append(keys, s.Key)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var out []use
	for _, s := range spreads {
		sight := sightOf(p, s, keys)
		var w identity
		w.text(p.Namespace)
		w.text(s.Key)
		w.selector(s.Selector)
		sight.identity(&w)
		n, ok := b.bySpread[string(w)]
		if !ok {
			n = len(b.spreads)
			b.bySpread[string(w)] = n
			b.spreads = append(b.spreads, &spreadRule{
				key: s.Key, namespace: p.Namespace, selector: s.Selector, view: b.ground.view(s.Key, sight),
			})
		}
		u := use{rule: n, maxSkew: s.MaxSkew, minDomains: s.MinDomains}
		if s.Selector.Matches(p.Labels) {
			u.self = 1
		}
		out = append(out, u)
	}
	return out
}

// near returns the index of the rule with these affinity terms, or -1 without terms. It adds the rule if it is new.
func (b *book) near(terms []*cluster.Term) int {
	if len(terms) == 0 {
		return -1
	}
	var w identity
	for _, t := range terms {
		w.term(t)
	}
	n, ok := b.byNear[string(w)]
	if !ok {
		n = len(b.nears)
		b.byNear[string(w)] = n
		r := &nearRule{terms: terms}
		for _, t := range terms {
			r.views = append(r.views, b.ground.bare(t.Key))
		}
		b.nears = append(b.nears, r)
	}
	return n
}

// apart returns the index of the rule with this anti-affinity term. It adds the rule if it is new.
func (b *book) apart(t *cluster.Term) int {
	var w identity
	w.term(t)
	n, ok := b.byApart[string(w)]
	if !ok {
		n = len(b.aparts)
		b.byApart[string(w)] = n
		b.aparts = append(b.aparts, &apartRule{term: t})
	}
	return n
}

// avoids returns the indices of the rules with these anti-affinity terms, ascending, each once.
func (b *book) avoids(terms []*cluster.Term) []int {
	var out []int
	for _, t := range terms {
		out = append(out, b.apart(t))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addKind adds the kind of residents or DaemonSet pods, and their anti-affinity terms; nil adds nothing.
func (b *book) addKind(k *cluster.Kind) {
	if _, ok := b.kindOf[k]; ok || k == nil {
		return
	}
	b.kindOf[k] = b.kind(k.Namespace, k.Labels)
	b.avoids(requiredTerms(k.Avoids))
}

// addResident adds the pods of a resident of a node to the rules that count them. Spread constraints do not count pods
// that are being deleted.
func (b *book) addResident(at spot, r cluster.Resident) {
	if r.Kind == nil || r.Count <= 0 {
		return
	}
	k := &b.kinds[b.kindOf[r.Kind]]
	stands := standing{spot: at, pods: r.Count}
	if !r.Ending {
		for _, n := range k.spreads {
			b.spreads[n].residents = append(b.spreads[n].residents, stands)
		}
	}
	for _, n := range k.nears {
		b.nears[n].residents = append(b.nears[n].residents, stands)
	}
	b.addStander(k, b.avoids(requiredTerms(r.Avoids)), stander{
		standing: stands, who: "a pod of namespace " + r.Namespace + " that is there",
	})
}

// relyOnDaemonPods handles DaemonSet pods of a planned node that start only with some of its offerings. If every
// offering of the node has at least one of those that an affinity counts, the affinity can rely on one such pod.
func (b *book) relyOnDaemonPods(c *checker) {
	for _, r := range b.nears {
		for i := range r.daemonPods {
			at := r.daemonPods[i].place
			if i > 0 && r.daemonPods[i-1].place == at {
				continue
			}
			without := func(o *offer) bool { return counted(o.kinds, r.counts) == 0 }
			if !slices.ContainsFunc(c.places[at].offers, without) {
				r.residents = append(r.residents, standing{spot: b.ground.spot(at), pods: 1})
			}
		}
	}
}

// addDaemonPod adds a DaemonSet pod to the rules that count it. An uncertain DaemonSet pod excludes other pods by
// anti-affinity, but satisfies no affinity.
func (b *book) addDaemonPod(g daemonPod) {
	k := &b.kinds[b.kindOf[g.kind]]
	if len(k.spreads)+len(k.nears)+len(k.aparts)+len(g.kind.Avoids) == 0 {
		return
	}
	if g.sure {
		b.addResident(b.ground.spot(g.place), cluster.Resident{Kind: g.kind, Count: 1})
		return
	}
	stands := standing{spot: g.spot, pods: 1}
	for _, n := range k.spreads {
		b.spreads[n].daemonPods = append(b.spreads[n].daemonPods, stands)
	}
	for _, n := range k.nears {
		b.nears[n].daemonPods = append(b.nears[n].daemonPods, stands)
	}
	b.addStander(k, b.avoids(requiredTerms(g.kind.Avoids)), stander{
		standing: stands, who: "a DaemonSet's pod of namespace " + g.kind.Namespace,
	})
}
