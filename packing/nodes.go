package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// rooms is what is left of the nodes that are there.
type rooms struct {
	nodes  []*cluster.Node // those that take pods; initialized first, then joined, then by name
	room   []vector
	ports  [][]cluster.HostPort
	labels *labelIndex
	hard   []bitset // by signature
	liked  []bitset // by signature: the nodes that its preferences like too
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
		r.room = append(r.room, res.of(n.Allocatable.Sub(n.Requested)))
		r.ports = append(r.ports, slices.Clone(n.HostPorts))
	}
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

// place gives the nodes that are there to the pods: those of higher priority
// first, then those that nothing on the market would take, then those that
// would cost most.
func (w *work) place(r *rooms) {
	if len(r.nodes) == 0 {
		return
	}
	w.appraise(w.active())
	var waiting []int
	for c := range w.left {
		waiting = append(waiting, c)
	}
	for _, tier := range w.tiersOf(waiting) {
		for _, sets := range [][]bitset{r.liked, r.hard} {
			w.placeTier(r, tier, sets)
		}
	}
}

// placeTier fills the nodes in order with the classes of the tier.
func (w *work) placeTier(r *rooms, tier []int, sets []bitset) {
	f := filler{work: w, left: w.left}
	for i := range r.nodes {
		var among []int
		for _, c := range tier {
			if w.left[c] > 0 && sets[w.q.classes[c].sig].has(i) {
				among = append(among, c)
			}
		}
		if len(among) == 0 {
			continue
		}
		m := machine{offer: -1, free: r.room[i], ports: r.ports[i]}
		f.fill(&m, among)
		r.ports[i] = m.ports
		for _, t := range m.takes {
			w.left[t.class] -= t.n
			w.placed = append(w.placed, placed{node: r.nodes[i].Name, class: t.class, n: t.n})
		}
	}
}
