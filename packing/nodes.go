package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/topology"
)

// rooms is what is left of the nodes that are there.
type rooms struct {
	nodes  []*cluster.Node // those that take pods; initialized first, then joined, then by name
	room   []vector
	ports  [][]cluster.HostPort
	hosts  []topology.Tally
	labels *labelIndex
	hard   []bitset // by signature
	liked  []bitset // by signature: the nodes that its preferences like too
	full   bitset   // nodes without room for anybody
}

// clone returns a copy that can be filled by itself.
func (r *rooms) clone() *rooms {
	out := *r
	out.room, out.ports, out.hosts = slices.Clone(r.room), slices.Clone(r.ports), slices.Clone(r.hosts)
	for i := range r.room {
		out.room[i], out.ports[i], out.hosts[i] = r.room[i].clone(), slices.Clip(r.ports[i]), r.hosts[i].Clone()
	}
	return &out
}

func newRooms(s cluster.Snapshot, res resources, q *queue) *rooms {
	r := &rooms{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Leaving {
			r.nodes = append(r.nodes, n)
		}
	}
	slices.SortStableFunc(r.nodes, compareNodes)
	for _, n := range r.nodes {
		r.room = append(r.room, res.left(n.Allocatable, n.Allocatable.Sub(n.Requested)))
		r.ports = append(r.ports, slices.Clone(n.HostPorts))
	}
	r.hosts = make([]topology.Tally, len(r.nodes))
	r.labels = newLabelIndex(len(r.nodes), func(key string, add func(from, to int, value string)) {
		for i, n := range r.nodes {
			if value, ok := n.Labels[key]; ok {
				add(i, i+1, value)
			} else if key == labelHostname {
				add(i, i+1, n.Name)
			}
		}
	})
	for i := range q.signatures {
		r.judge(&q.signatures[i])
	}
	r.findFull(q)
	return r
}

func compareNodes(a, b *cluster.Node) int {
	switch {
	case a.Initialized != b.Initialized:
		return boolFirst(a.Initialized)
	case a.Joined != b.Joined:
		return boolFirst(a.Joined)
	}
	return compareText(a.Name, b.Name)
}

func boolFirst(yes bool) int {
	if yes {
		return -1
	}
	return 1
}

// judge notes which nodes the signature accepts, and which it likes. A node
// that no preference likes is still taken before anything is bought: that is
// where kube-scheduler will put the pod.
func (r *rooms) judge(s *signature) {
	hard := r.labels.satisfyingOne(s.required)
	tolerating, soft := r.tolerated(s)
	hard.and(tolerating)
	liked := hard.both(soft)
	if !liked.any() {
		liked = hard
	}
	for _, p := range s.preferred {
		if both := liked.both(r.labels.satisfying(p.Requirements)); both.any() {
			liked = both
		}
	}
	r.hard = append(r.hard, hard)
	r.liked = append(r.liked, liked)
}

// tolerated returns the nodes whose taints the signature tolerates, and those
// of them without a soft taint that it does not.
func (r *rooms) tolerated(s *signature) (hard, soft bitset) {
	hard, soft = newBitset(len(r.nodes)), newBitset(len(r.nodes))
	for i, n := range r.nodes {
		if _, bad := constraint.Untolerated(n.Taints, s.tolerations); bad {
			continue
		}
		hard.set(i)
		avoided := func(t constraint.Taint) bool { return !constraint.Tolerated(t, s.tolerations) }
		if !slices.ContainsFunc(n.Taints, avoided) {
			soft.set(i)
		}
	}
	return hard, soft
}

// findFull notes the nodes that have no room for any class.
func (r *rooms) findFull(q *queue) {
	r.full = newBitset(len(r.nodes))
	var least vector
	for c := range q.classes {
		if ask := q.classes[c].ask; least == nil {
			least = ask.clone()
		} else {
			for i := range least {
				least[i] = min(least[i], ask[i])
			}
		}
	}
	for i := range r.nodes {
		if !least.fits(r.room[i]) {
			r.full.set(i)
		}
	}
}

// place gives the nodes that are there to the pods: those of higher priority
// first, then those that nothing on the market would take, then those that
// would cost most.
func (w *work) place(classes []int) {
	if len(w.rooms.nodes) == 0 || len(classes) == 0 {
		return
	}
	w.appraise(w.active())
	for before := -1; before < len(w.placed); {
		before = len(w.placed)
		for _, tier := range w.tiersOf(classes) {
			for _, wish := range []bool{true, false} {
				// Where the fewest pods of a spread are, may change with every pass.
				for w.placeTier(tier, wish) && w.follows(tier) {
				}
			}
		}
		if classes = w.following(); len(classes) == 0 {
			return // whoever must be near pods of lower priority comes after them
		}
	}
}

// following returns the classes with pods left that must be on a machine with certain others.
func (w *work) following() []int {
	var out []int
	for _, c := range w.order {
		if w.left[c] > 0 && w.q.profile(&w.q.classes[c]).Follows() {
			out = append(out, c)
		}
	}
	return out
}

// follows reports whether room for some of the classes may have come with the pods of others.
func (w *work) follows(classes []int) bool {
	return slices.ContainsFunc(classes, func(c int) bool {
		return w.left[c] > 0 && len(w.q.profile(&w.q.classes[c]).Host) > 0
	})
}

// placeTier fills the nodes in order with the classes of the tier, where their
// wishes are met or anywhere, and reports whether it placed any.
func (w *work) placeTier(tier []int, wish bool) bool {
	r, sets := w.rooms, w.rooms.hard
	if wish {
		sets = r.liked
	}
	f := filler{work: w, left: w.left, here: true, strict: wish}
	any := false
	for i := range r.nodes {
		if r.full.has(i) {
			continue
		}
		var among []int
		for _, c := range tier {
			class := &w.q.classes[c]
			if w.left[c] > 0 && sets[class.sig].has(i) && (class.nodes == nil || class.nodes.has(i)) {
				among = append(among, c)
			}
		}
		if len(among) == 0 {
			continue
		}
		m := machine{offer: -1, free: r.room[i], ports: r.ports[i], host: r.hosts[i]}
		f.fill(&m, w.shelve(among))
		r.ports[i], r.hosts[i] = m.ports, m.host
		for _, t := range m.takes {
			w.left[t.class] -= t.n
			w.placed = append(w.placed, placed{node: i, class: t.class, n: t.n})
			any = true
		}
	}
	if any {
		w.ground.findFewest(r, w.q.book, w.ground.counted)
	}
	return any
}
