package verify

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// ground has the properties of the places that matter for rules between pods: the labels that a rule
// uses, and the taints. Places with the same properties share a face.
type ground struct {
	relevant []string // the labels that matter, sorted; hostname is never among them
	named    bool     // the node affinity of pods with a spread selects a node by name, so the looks include the name

	axes       map[string]*axis // by label
	looks      []look
	faces      []face
	views      map[string]*view // by identity of label and sight
	byLook     map[string]int   // by identity: index in looks
	byFace     map[string]int   // by identity: index in faces
	faceOf     []int            // by place: index in faces
	hostsOf    []int            // by place: its domain of hostname
	daemonPods []daemonPod      // of planned nodes, by place
}

// daemonPod is the pod of a DaemonSet on a planned node. It starts before all other pods.
type daemonPod struct {
	kind *cluster.Kind
	spot
	sure bool // the pod starts whichever offering is launched
}

// spot is a place, limited to the looks of the place that are in the face.
type spot struct{ place, face int }

// look has the properties of an existing node, or of a planned node with one of its offerings.
type look struct {
	labels  requirements.Labels // only labels that matter
	taints  []requirements.Taint
	leaving bool // the node takes no new pods, and will be gone
}

// face is the set of looks that a place may have: one for an existing node, several for a planned node
// whose offerings differ.
type face struct {
	looks  []int // indices in ground.looks, ascending
	places int   // number of places with the face; 0 for a face that only spots of DaemonSet pods have
}

// axis numbers the domains of one label.
type axis struct {
	key   string
	names []string       // by domain
	byVal map[string]int // by value of the label: its domain
}

// domain returns the number of the domain with that value. It adds the domain if it is new.
func (a *axis) domain(value string) int {
	n, ok := a.byVal[value]
	if !ok {
		n = len(a.names)
		a.byVal[value] = n
		a.names = append(a.names, value)
	}
	return n
}

// newGround returns the ground of all places, for these relevant labels.
func newGround(c *checker, relevant []string, named bool) *ground {
	g := &ground{
		relevant: relevant, named: named,
		axes: map[string]*axis{}, views: map[string]*view{}, byLook: map[string]int{}, byFace: map[string]int{},
	}
	lookOf := map[int]int{} // by offer.number
	hosts := g.axis(labelHostname)
	for i := range c.places {
		p := &c.places[i]
		var looks []int
		host := p.name // the name contains a blank, so it differs from the name of every node
		if p.node != nil {
			labels := nodeLabels(p.node)
			host = labels[labelHostname]
			looks = []int{g.look(labels, p.node.Taints, p.node.Leaving)}
		}
		for _, o := range p.offers {
			n, ok := lookOf[o.number]
			if !ok {
				n = g.look(o.labels, o.pool.Taints, false)
				lookOf[o.number] = n
			}
			looks = append(looks, n)
		}
		face := g.face(looks)
		g.faces[face].places++
		g.faceOf = append(g.faceOf, face)
		g.hostsOf = append(g.hostsOf, hosts.domain(host))
		g.addDaemonPods(i, p.offers, lookOf)
	}
	return g
}

// addDaemonPods adds the DaemonSet pods that will or may run on a planned node with these offers; none for an existing
// node. lookOf is by offer.number.
func (g *ground) addDaemonPods(place int, offers []*offer, lookOf map[int]int) {
	if len(offers) == 0 {
		return
	}
	first := offers[0].kinds
	if !slices.ContainsFunc(offers, func(o *offer) bool { return !slices.Equal(o.kinds, first) }) {
		for _, k := range first {
			g.daemonPods = append(g.daemonPods, daemonPod{kind: k, spot: g.spot(place), sure: true})
		}
		return
	}
	var order []string // the keys of kinds and looks, as they were added
	kinds, looks := map[string]*cluster.Kind{}, map[string][]int{}
	for _, o := range offers {
		seen := map[string]int{}
		for _, k := range o.kinds {
			name := nameOf(k)
			seen[name]++ // distinguishes several pods of one kind
			name = fmt.Sprint(name, seen[name])
			if looks[name] == nil {
				order, kinds[name] = append(order, name), k
			}
			looks[name] = append(looks[name], lookOf[o.number])
		}
	}
	for _, name := range order {
		sure := len(looks[name]) == len(offers)
		g.daemonPods = append(g.daemonPods, daemonPod{kind: kinds[name], spot: spot{place, g.face(looks[name])}, sure: sure})
	}
}

// nameOf returns a key for the kind that is equal for kinds that no rule distinguishes.
func nameOf(k *cluster.Kind) string {
	var w identity
	w.text(k.Namespace)
	w.labels(k.Labels)
	for _, t := range requiredTerms(k.Avoids) {
		w.term(t)
	}
	return string(w)
}

// axis returns the axis of the label. It adds the axis if it is new.
func (g *ground) axis(key string) *axis {
	a := g.axes[key]
	if a == nil {
		a = &axis{key: key, byVal: map[string]int{}}
		g.axes[key] = a
	}
	return a
}

// look returns the index of the look with these properties, of which it keeps only the labels that matter. It adds the
// look if it is new.
func (g *ground) look(labels requirements.Labels, taints []requirements.Taint, leaving bool) int {
	relevant := requirements.Labels{}
	for _, key := range g.relevant {
		if value, ok := labels[key]; ok {
			relevant[key] = value
		}
	}
	if g.named {
		relevant[labelHostname] = labels[labelHostname]
	}
	var w identity
	w.labels(relevant)
	w.taints(taints)
	w.flag(leaving)
	n, ok := g.byLook[string(w)]
	if !ok {
		n = len(g.looks)
		g.byLook[string(w)] = n
		g.looks = append(g.looks, look{labels: relevant, taints: taints, leaving: leaving})
	}
	return n
}

// face returns the index of the face with these looks, which it sorts. It adds the face if it is new.
func (g *ground) face(looks []int) int {
	slices.Sort(looks)
	looks = slices.Compact(looks)
	var w identity
	for _, n := range looks {
		w.number(n)
	}
	n, ok := g.byFace[string(w)]
	if !ok {
		n = len(g.faces)
		g.byFace[string(w)] = n
		g.faces = append(g.faces, face{looks: looks})
	}
	return n
}

// sight selects the nodes that count for a rule: nodes that have all the labels, that the node affinity of the pods
// with the rule accepts, and whose taints these pods tolerate.
type sight struct {
	keys        []string                    // the labels
	required    []requirements.Requirements // node affinity; every node is accepted if empty
	honorTaints bool                        // false: taints do not matter
	tolerations []requirements.Toleration   // only if honorTaints
}

// sightOf returns the sight of a spread constraint of the pod. keys are the topology keys of all its spread
// constraints.
func sightOf(p *cluster.Pod, s *cluster.Spread, keys []string) sight {
	out := sight{keys: keys, honorTaints: s.HonorTaints}
	if !s.AnyNode {
		out.required = p.Required
	}
	if s.HonorTaints {
		out.tolerations = p.Tolerations
	}
	return out
}

// identity adds the sight to the key w.
func (s *sight) identity(w *identity) {
	w.texts(s.keys)
	w.alternatives(s.required)
	w.flag(s.honorTaints)
	w.tolerations(s.tolerations)
}

// sees reports whether nodes with that look count.
func (s *sight) sees(l *look) bool {
	for _, key := range s.keys {
		if _, ok := l.labels[key]; !ok && key != labelHostname {
			return false
		}
	}
	taints := l.taints
	if !s.honorTaints {
		taints = nil
	} else if l.leaving {
		return false // the node takes no pods, so it has a taint that the pods do not tolerate
	}
	return suits(s.required, s.tolerations, l.labels, taints)
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

// view has the domains of one label that count for the rules with one sight.
type view struct {
	ground *ground
	axis   *axis
	sight  sight
	reach  []reach // by face; for hostname without domains: the method of adds them
	seen   []bool  // by face, for hostname: whether some look of the face counts

	bounds [2]bounds // before, and after leaving nodes are gone
}

// bounds has the domains of a view that exist, at least and at most.
type bounds struct {
	sure  map[int]bool // domains with a place that is certainly in the domain; empty for hostname
	hosts int          // for hostname: maximum number of places that count
	least int          // for hostname: number of places that certainly count

	loose      []looseSet
	looseSetOf []int // by face: index in loose of its set, or -1
}

// looseSet is a set of places that may be in one of several domains, or in none.
type looseSet struct {
	reach
	places int // number of places
}

// view returns the view of the label with that sight. It adds the view if it is new.
func (g *ground) view(key string, s sight) *view {
	var w identity
	w.text(key)
	s.identity(&w)
	if v := g.views[string(w)]; v != nil {
		return v
	}
	v := &view{ground: g, axis: g.axis(key), sight: s, reach: make([]reach, len(g.faces)), seen: make([]bool, len(g.faces))}
	for f := range g.faces {
		v.reach[f], v.seen[f] = v.look(g.faces[f].looks)
	}
	v.bounds[0], v.bounds[1] = v.bound(false), v.bound(true)
	g.views[string(w)] = v
	return v
}

// look returns the reach of a place with these looks, and whether one of the looks counts.
func (v *view) look(looks []int) (r reach, seen bool) {
	r.sure = len(looks) > 0
	for _, n := range looks {
		l := &v.ground.looks[n]
		if !v.sight.sees(l) {
			r.sure = false
			continue
		}
		seen = true
		if v.axis.key != labelHostname {
			r.domains = append(r.domains, v.axis.domain(l.labels[v.axis.key]))
		}
	}
	slices.Sort(r.domains)
	r.domains = slices.Compact(r.domains)
	return r, seen
}

// bound returns the bounds of the view; without leaving nodes if gone.
func (v *view) bound(gone bool) bounds {
	b := bounds{sure: map[int]bool{}, looseSetOf: make([]int, len(v.reach))}
	for f, r := range v.reach {
		b.looseSetOf[f] = -1
		face := &v.ground.faces[f]
		if face.places == 0 || !v.seen[f] || gone && v.leaving(f) {
			continue
		}
		if v.axis.key == labelHostname {
			b.hosts += face.places
			if r.sure {
				b.least += face.places
			}
			continue
		}
		if d, ok := r.certain(); ok {
			b.sure[d] = true
			continue
		}
		n := slices.IndexFunc(b.loose, func(l looseSet) bool { return l.sure == r.sure && slices.Equal(l.domains, r.domains) })
		if n < 0 {
			n = len(b.loose)
			b.loose = append(b.loose, looseSet{reach: r})
		}
		b.loose[n].places += face.places
		b.looseSetOf[f] = n
	}
	return b
}

// leaving reports whether places with that face are leaving nodes.
func (v *view) leaving(face int) bool {
	looks := v.ground.faces[face].looks
	return len(looks) == 1 && v.ground.looks[looks[0]].leaving
}

// at returns the reach of a place.
func (v *view) at(place int) reach { return v.of(v.ground.spot(place)) }

// of returns the reach of the place, limited to the looks in the face of the spot.
func (v *view) of(s spot) reach {
	r := v.reach[s.face]
	if v.axis.key == labelHostname && v.seen[s.face] {
		r.domains = v.ground.hostsOf[s.place : s.place+1]
	}
	return r
}

// spot returns the spot of a place with all its looks.
func (g *ground) spot(place int) spot { return spot{place, g.faceOf[place]} }

// bare returns the view of a rule that only requires the label, such as affinity and anti-affinity.
func (g *ground) bare(key string) *view { return g.view(key, sight{keys: []string{key}}) }
