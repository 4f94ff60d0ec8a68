package verify

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// placeFacts has the properties of the places that matter for rules between pods: the labels that a rule uses, and the
// taints. Places with the same properties share a traitSet.
type placeFacts struct {
	relevant []string // the labels that matter, sorted; hostname is never among them
	byName   bool     // the node affinity of pods with a spread selects a node by name, so nodeTraits include the name

	axes       map[string]*labelDomains // by label
	traits     []nodeTraits
	traitSets  []traitSet
	views      map[string]*view // by identity of label and nodeFilter
	byTraits   map[string]int   // by identity: index in traits
	bySet      map[string]int   // by identity: index in traitSets
	traitSetOf []int            // by place: index in traitSets
	hostOf     []int            // by place: its domain of hostname
	daemonPods []daemonPod      // of planned nodes, by place
}

// daemonPod is the pod of a DaemonSet on a planned node. It starts before all other pods.
type daemonPod struct {
	kind *cluster.PodKind
	placeWithTraits
	sure bool // the pod starts whichever offering is launched
}

// placeWithTraits is a place, limited to those traits of the place that are in the set.
type placeWithTraits struct{ place, traitSet int }

// nodeTraits has the properties of an existing node, or of a planned node with one of its offerings.
type nodeTraits struct {
	labels  requirements.Labels // only labels that matter
	taints  []requirements.Taint
	leaving bool // the node takes no new pods, and will be gone
}

// traitSet is the set of nodeTraits that a place may have: one for an existing node, several for a planned node whose
// offerings differ.
type traitSet struct {
	traits []int // indices in placeFacts.traits, ascending
	places int   // number of places with the set; 0 for a set that only daemonPods have
}

// labelDomains numbers the domains of one label.
type labelDomains struct {
	key     string
	names   []string       // by domain
	byValue map[string]int // by value of the label: its domain
}

// domain returns the number of the value's domain, which it adds if it is new.
func (a *labelDomains) domain(value string) int {
	n, ok := a.byValue[value]
	if !ok {
		n = len(a.names)
		a.byValue[value] = n
		a.names = append(a.names, value)
	}
	return n
}

func newPlaceFacts(c *checker, relevant []string, byName bool) *placeFacts {
	pf := &placeFacts{
		relevant: relevant, byName: byName,
		axes: map[string]*labelDomains{}, views: map[string]*view{}, byTraits: map[string]int{}, bySet: map[string]int{},
	}
	traitsOf := map[int]int{} // by offer.number: index in traits
	hosts := pf.axis(labelHostname)
	for i := range c.places {
		p := &c.places[i]
		var traits []int
		host := p.name // the name contains a blank, so it differs from the name of every node
		if p.node != nil {
			labels := nodeLabels(p.node)
			host = labels[labelHostname]
			traits = []int{pf.traitsIndex(labels, p.node.Taints, p.node.Leaving)}
		}
		for _, o := range p.offers {
			n, ok := traitsOf[o.number]
			if !ok {
				n = pf.traitsIndex(o.labels, o.pool.Taints, false)
				traitsOf[o.number] = n
			}
			traits = append(traits, n)
		}
		set := pf.traitSetIndex(traits)
		pf.traitSets[set].places++
		pf.traitSetOf = append(pf.traitSetOf, set)
		pf.hostOf = append(pf.hostOf, hosts.domain(host))
		pf.addDaemonPods(i, p.offers, traitsOf)
	}
	return pf
}

// addDaemonPods adds the DaemonSet pods that will or may run on a planned node with these offers; none for an existing
// node. traitsOf is, by offer.number, the index in traits.
func (pf *placeFacts) addDaemonPods(place int, offers []*offer, traitsOf map[int]int) {
	if len(offers) == 0 {
		return
	}
	first := offers[0].kinds
	if !slices.ContainsFunc(offers, func(o *offer) bool { return !slices.Equal(o.kinds, first) }) {
		for _, k := range first {
			pf.daemonPods = append(pf.daemonPods, daemonPod{kind: k, placeWithTraits: pf.withAllTraits(place), sure: true})
		}
		return
	}
	var names []string // the keys of kinds and traits, in the order in which they were added
	kinds, traits := map[string]*cluster.PodKind{}, map[string][]int{}
	for _, o := range offers {
		seen := map[string]int{}
		for _, k := range o.kinds {
			name := kindKey(k)
			seen[name]++ // distinguishes several pods of one kind
			name = fmt.Sprint(name, seen[name])
			if traits[name] == nil {
				names, kinds[name] = append(names, name), k
			}
			traits[name] = append(traits[name], traitsOf[o.number])
		}
	}
	for _, name := range names {
		sure := len(traits[name]) == len(offers)
		pf.daemonPods = append(pf.daemonPods, daemonPod{
			kind: kinds[name], placeWithTraits: placeWithTraits{place, pf.traitSetIndex(traits[name])}, sure: sure,
		})
	}
}

// kindKey returns a key for the kind that is equal for kinds that no rule distinguishes.
func kindKey(k *cluster.PodKind) string {
	var w identity
	w.text(k.Namespace)
	w.labels(k.Labels)
	for _, t := range requiredTerms(k.RequiredAntiAffinity) {
		w.term(t)
	}
	return string(w)
}

func (pf *placeFacts) axis(key string) *labelDomains {
	a := pf.axes[key]
	if a == nil {
		a = &labelDomains{key: key, byValue: map[string]int{}}
		pf.axes[key] = a
	}
	return a
}

// traitsIndex returns the index of the nodeTraits with these properties. It keeps only the labels that matter, and adds
// the nodeTraits if they are new.
func (pf *placeFacts) traitsIndex(labels requirements.Labels, taints []requirements.Taint, leaving bool) int {
	relevant := requirements.Labels{}
	for _, key := range pf.relevant {
		if value, ok := labels[key]; ok {
			relevant[key] = value
		}
	}
	if pf.byName {
		relevant[labelHostname] = labels[labelHostname]
	}
	var w identity
	w.labels(relevant)
	w.taints(taints)
	w.flag(leaving)
	n, ok := pf.byTraits[string(w)]
	if !ok {
		n = len(pf.traits)
		pf.byTraits[string(w)] = n
		pf.traits = append(pf.traits, nodeTraits{labels: relevant, taints: taints, leaving: leaving})
	}
	return n
}

// traitSetIndex returns the index of the set with these traits, which it sorts. It adds the set if it is new.
func (pf *placeFacts) traitSetIndex(traits []int) int {
	slices.Sort(traits)
	traits = slices.Compact(traits)
	var w identity
	for _, n := range traits {
		w.number(n)
	}
	n, ok := pf.bySet[string(w)]
	if !ok {
		n = len(pf.traitSets)
		pf.bySet[string(w)] = n
		pf.traitSets = append(pf.traitSets, traitSet{traits: traits})
	}
	return n
}

// nodeFilter selects the nodes that count for a rule. Such a node has all the labels, the node affinity of the pods
// with the rule accepts it, and these pods tolerate its taints.
type nodeFilter struct {
	keys        []string                    // the labels
	required    []requirements.Requirements // node affinity; every node is accepted if empty
	honorTaints bool                        // false: taints do not matter
	tolerations []requirements.Toleration   // only if honorTaints
}

// nodeFilterOf returns the filter of a spread constraint of the pod. keys are the topology keys of all its spread
// constraints.
func nodeFilterOf(p *cluster.Pod, s *cluster.Spread, keys []string) nodeFilter {
	out := nodeFilter{keys: keys, honorTaints: s.HonorTaints}
	if !s.IgnoresNodeAffinity {
		out.required = p.Required
	}
	if s.HonorTaints {
		out.tolerations = p.Tolerations
	}
	return out
}

func (nf *nodeFilter) identity(w *identity) {
	w.texts(nf.keys)
	w.alternatives(nf.required)
	w.flag(nf.honorTaints)
	w.tolerations(nf.tolerations)
}

func (nf *nodeFilter) accepts(traits *nodeTraits) bool {
	for _, key := range nf.keys {
		if _, ok := traits.labels[key]; !ok && key != labelHostname {
			return false
		}
	}
	taints := traits.taints
	if !nf.honorTaints {
		taints = nil
	} else if traits.leaving {
		return false // the node takes no pods, so it has a taint that the pods do not tolerate
	}
	return suits(nf.required, nf.tolerations, traits.labels, taints)
}

// reach has the domains that a place may be in, for one rule.
type reach struct {
	domains []int // ascending; empty: the place does not count for the rule
	sure    bool  // the place counts whichever offering is launched
}

// certain returns the domain of the place, and true if no other domain is possible.
func (r *reach) certain() (int, bool) {
	if len(r.domains) == 1 && r.sure {
		return r.domains[0], true
	}
	return 0, false
}

// view has the domains of one label that count for the rules with one nodeFilter.
type view struct {
	facts   *placeFacts
	axis    *labelDomains
	filter  nodeFilter
	reach   []reach // by traitSet; without domains for hostname: reachWithTraits adds them
	counted []bool  // by traitSet: whether some traits of the set count

	bounds [2]bounds // 0: while leaving nodes exist; 1: after they are gone
}

// bounds has the domains of a view that certainly exist, and those that may exist.
type bounds struct {
	sure      map[int]bool // domains with a place that is certainly in the domain; empty for hostname
	hosts     int          // for hostname: maximum number of places that count
	sureHosts int          // for hostname: number of places that certainly count

	loose      []uncertainPlaces // places whose domain is not certain
	looseSetOf []int             // by traitSet: index in loose of its set, or -1
}

// uncertainPlaces is a set of places that may be in one of several domains, or in none.
type uncertainPlaces struct {
	reach
	places int // number of places
}

func (pf *placeFacts) view(key string, filter nodeFilter) *view {
	var w identity
	w.text(key)
	filter.identity(&w)
	if v := pf.views[string(w)]; v != nil {
		return v
	}
	v := &view{
		facts: pf, axis: pf.axis(key), filter: filter, reach: make([]reach, len(pf.traitSets)), counted: make([]bool, len(pf.traitSets)),
	}
	for n := range pf.traitSets {
		v.reach[n], v.counted[n] = v.reachOfTraits(pf.traitSets[n].traits)
	}
	v.bounds[0], v.bounds[1] = v.boundsAt(false), v.boundsAt(true)
	pf.views[string(w)] = v
	return v
}

// reachOfTraits returns the reach of a place that may have these traits, and whether some of them count.
func (v *view) reachOfTraits(indices []int) (r reach, counted bool) {
	r.sure = len(indices) > 0
	for _, n := range indices {
		traits := &v.facts.traits[n]
		if !v.filter.accepts(traits) {
			r.sure = false
			continue
		}
		counted = true
		if v.axis.key != labelHostname {
			r.domains = append(r.domains, v.axis.domain(traits.labels[v.axis.key]))
		}
	}
	slices.Sort(r.domains)
	r.domains = slices.Compact(r.domains)
	return r, counted
}

// boundsAt returns the bounds of the view: before leaving nodes are gone or, with gone, after.
func (v *view) boundsAt(gone bool) bounds {
	b := bounds{sure: map[int]bool{}, looseSetOf: make([]int, len(v.reach))}
	for n, r := range v.reach {
		b.looseSetOf[n] = -1
		places := v.facts.traitSets[n].places
		if places == 0 || !v.counted[n] || gone && v.isLeaving(n) {
			continue
		}
		if v.axis.key == labelHostname {
			b.hosts += places
			if r.sure {
				b.sureHosts += places
			}
			continue
		}
		if d, ok := r.certain(); ok {
			b.sure[d] = true
			continue
		}
		set := slices.IndexFunc(b.loose, func(l uncertainPlaces) bool { return l.sure == r.sure && slices.Equal(l.domains, r.domains) })
		if set < 0 {
			set = len(b.loose)
			b.loose = append(b.loose, uncertainPlaces{reach: r})
		}
		b.loose[set].places += places
		b.looseSetOf[n] = set
	}
	return b
}

// isLeaving reports whether places with that traitSet are leaving nodes.
func (v *view) isLeaving(traitSet int) bool {
	traits := v.facts.traitSets[traitSet].traits
	return len(traits) == 1 && v.facts.traits[traits[0]].leaving
}

func (v *view) reachOfPlace(place int) reach { return v.reachWithTraits(v.facts.withAllTraits(place)) }

// reachWithTraits returns the reach of the place, limited to the traits in the traitSet of the placeWithTraits.
func (v *view) reachWithTraits(s placeWithTraits) reach {
	r := v.reach[s.traitSet]
	if v.axis.key == labelHostname && v.counted[s.traitSet] {
		r.domains = v.facts.hostOf[s.place : s.place+1]
	}
	return r
}

func (pf *placeFacts) withAllTraits(place int) placeWithTraits {
	return placeWithTraits{place, pf.traitSetOf[place]}
}

// labelView returns the view of a rule that only requires the label, such as affinity and anti-affinity.
func (pf *placeFacts) labelView(key string) *view {
	return pf.view(key, nodeFilter{keys: []string{key}})
}
