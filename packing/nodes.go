package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/bitmap"
	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/pending"
	"github.com/joiner-sh/joiner/topology"
)

// rooms is what is left of the nodes that are there.
type rooms struct {
	nodes  []*cluster.Node   // those that take pods; initialized first, then joined, then by name
	room   []capacity.Vector // one after the other in cells
	cells  []int64
	ports  [][]cluster.HostPort
	hosts  []topology.Tally // none is altered: it is replaced
	lent   bool             // cells, ports and hosts are another's too
	labels *bitmap.Index
	taints []tainted
	hard   []bitmap.Set       // by signature
	liked  []bitmap.Set       // by signature: the nodes that its preferences like too
	full   bitmap.Set         // nodes without room for anybody
	fits   []bitmap.Set       // by class, made when first asked for; see fitting
	held   map[int]bitmap.Set // by group over host names, likewise; see having
}

// tainted is the nodes that have the same taints.
type tainted struct {
	taints []constraint.Taint
	nodes  bitmap.Set
}

// clone returns a copy that can be filled by itself. It shares all that there is with r until
// it gets its first pods; r must not get any after that.
func (r *rooms) clone() *rooms {
	out := *r
	out.lent, out.fits, out.held = true, nil, map[int]bitmap.Set{}
	return &out
}

// set notes what is left of a node, and who is on it, once it has got pods.
func (r *rooms) set(node int, free capacity.Vector, ports []cluster.HostPort, host topology.Tally) {
	if r.lent {
		r.lent, r.cells = false, slices.Clone(r.cells)
		r.room = capacity.VectorsIn(r.cells, len(r.nodes))
		r.ports, r.hosts = slices.Clone(r.ports), slices.Clone(r.hosts)
	}
	copy(r.room[node], free)
	r.ports[node], r.hosts[node] = slices.Clip(ports), host
	for group, held := range r.held {
		if host.Matched(group) > 0 {
			held.Add(node)
		}
	}
}

func newRooms(s cluster.Snapshot, q *queue) *rooms {
	r := &rooms{nodes: make([]*cluster.Node, 0, len(s.Nodes)), held: map[int]bitmap.Set{}}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Leaving {
			r.nodes = append(r.nodes, n)
		}
	}
	if !slices.IsSortedFunc(r.nodes, compareNodes) {
		slices.SortStableFunc(r.nodes, compareNodes)
	}
	r.cells = make([]int64, len(r.nodes)*len(q.Dims))
	r.room, r.ports = capacity.VectorsIn(r.cells, len(r.nodes)), make([][]cluster.HostPort, len(r.nodes))
	for i, n := range r.nodes {
		q.Dims.Left(r.room[i], n.Allocatable, n.Requested)
		r.ports[i] = slices.Clip(n.HostPorts)
	}
	r.hosts = make([]topology.Tally, len(r.nodes))
	r.labels = bitmap.NewIndex(len(r.nodes), func(key string, add func(from, to int, value string)) {
		for i, n := range r.nodes {
			if value, ok := n.Labels[key]; ok {
				add(i, i+1, value)
			} else if key == topology.Hostname {
				add(i, i+1, n.Name)
			}
		}
	})
	r.findTaints()
	for i := range q.Signatures {
		r.judge(&q.Signatures[i])
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
func (r *rooms) judge(s *pending.Signature) {
	hard := r.labels.SatisfyingOne(s.Required)
	tolerating, soft := r.tolerated(s)
	hard.And(tolerating)
	liked := hard.Both(soft)
	if !liked.Any() {
		liked = hard
	}
	for _, p := range s.Preferred {
		if both := liked.Both(r.labels.Satisfying(p.Requirements)); both.Any() {
			liked = both
		}
	}
	r.hard = append(r.hard, hard)
	r.liked = append(r.liked, liked)
}

// findTaints puts the nodes with the same taints together: they are few groups.
func (r *rooms) findTaints() {
	numbers := map[string]int{}
	var key []byte
	for i, n := range r.nodes {
		key = key[:0]
		for _, t := range n.Taints {
			key = appendText(key, t.Key, t.Value, string(t.Effect))
		}
		number, ok := numbers[string(key)]
		if !ok {
			number = len(r.taints)
			numbers[string(key)] = number
			r.taints = append(r.taints, tainted{n.Taints, bitmap.New(len(r.nodes))})
		}
		r.taints[number].nodes.Add(i)
	}
}

// tolerated returns the nodes whose taints the signature tolerates, and those
// of them without a soft taint that it does not.
func (r *rooms) tolerated(s *pending.Signature) (hard, soft bitmap.Set) {
	hard, soft = bitmap.New(len(r.nodes)), bitmap.New(len(r.nodes))
	for _, alike := range r.taints {
		if _, bad := constraint.Untolerated(alike.taints, s.Tolerations); bad {
			continue
		}
		hard.Or(alike.nodes)
		avoided := func(t constraint.Taint) bool { return !constraint.Tolerated(t, s.Tolerations) }
		if !slices.ContainsFunc(alike.taints, avoided) {
			soft.Or(alike.nodes)
		}
	}
	return hard, soft
}

// findFull notes the nodes that have no room for any class.
func (r *rooms) findFull(q *queue) {
	r.full = bitmap.New(len(r.nodes))
	var least capacity.Vector
	for c := range q.classes {
		if ask := q.classes[c].Ask; least == nil {
			least = ask.Clone()
		} else {
			for i := range least {
				least[i] = min(least[i], ask[i])
			}
		}
	}
	for i := range r.nodes {
		if !least.Fits(r.room[i]) {
			r.full.Add(i)
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
			// Where the fewest pods of a spread are, may change with every pass.
			for _, w.lightHere = range w.lights(tier) {
				for w.placeTier(tier, true) && w.follows(tier) {
				}
			}
			for w.placeTier(tier, false) && w.follows(tier) {
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
	sets := w.rooms.hard
	if wish {
		sets = w.rooms.liked
	}
	f := filler{work: w, left: w.left, here: true, strict: wish}
	any := false
	open, waiting := w.open(tier, sets)
	var among []int
	for i := open.Next(0); i >= 0; i = open.Next(i + 1) {
		among = among[:0]
		for _, c := range tier {
			class := &w.q.classes[c]
			if w.left[c] > 0 && sets[class.Sig].Has(i) && (class.nodes == nil || class.nodes.Has(i)) {
				among = append(among, c)
			}
		}
		if len(among) == 0 || !f.put(i, among) {
			continue
		}
		any = true
		if w.waiting(tier) <= waiting*7/8 {
			open, waiting = w.open(tier, sets)
		}
	}
	if any {
		w.ground.findFewest(w.rooms, w.q.Book, w.ground.counted)
	}
	return any
}

// put fills the node with pods of the classes, and reports whether it took any.
func (f *filler) put(node int, classes []int) bool {
	r := f.rooms
	m := machine{offer: -1, free: r.room[node].Clone(), ports: r.ports[node], host: r.hosts[node].Clone()}
	f.fill(&m, f.shelve(classes))
	if len(m.takes) == 0 {
		return false
	}
	r.set(node, m.free, m.ports, m.host)
	for _, t := range m.takes {
		f.left[t.class] -= t.n
		f.placed = append(f.placed, placed{node: node, class: t.class, n: t.n})
	}
	return true
}

// open returns the nodes that have room for a unit of some class with any left, and may
// take it according to the sets of its signature; and how many such classes there are.
func (w *work) open(classes []int, sets []bitmap.Set) (nodes bitmap.Set, waiting int) {
	nodes = bitmap.New(len(w.rooms.nodes))
	for _, c := range classes {
		if w.left[c] > 0 {
			nodes.Or(w.reach(c, sets[w.q.classes[c].Sig]))
			waiting++
		}
	}
	return nodes, waiting
}

// reach returns the nodes of the set that have room for a unit of the class, but for those
// where its own demands about hosts keep it away. A node that gets pods may be one of them later.
func (w *work) reach(c int, set bitmap.Set) bitmap.Set {
	out := w.fitting(c).Both(set)
	for _, r := range w.q.profile(&w.q.classes[c]).Host {
		switch {
		case r.Weight > 0:
		case r.Form == topology.Near:
			out.And(w.rooms.having(r.Group))
		case r.Form == topology.Apart:
			out.AndNot(w.rooms.having(r.Group))
		}
	}
	return out
}

// having returns the nodes on which the group, over host names, counts a pod.
func (r *rooms) having(group int) bitmap.Set {
	held, ok := r.held[group]
	if !ok {
		held = bitmap.New(len(r.nodes))
		for i := range r.hosts {
			if r.hosts[i].Matched(group) > 0 {
				held.Add(i)
			}
		}
		r.held[group] = held
	}
	return held
}

// waiting returns how many of the classes have units left.
func (w *work) waiting(classes []int) int {
	n := 0
	for _, c := range classes {
		if w.left[c] > 0 {
			n++
		}
	}
	return n
}

// fitting returns the nodes that take a unit of the class and have room for it. It may
// tell of more nodes than that later: room only shrinks, and is looked at once for each class.
func (w *work) fitting(c int) bitmap.Set {
	r := w.rooms
	for len(r.fits) <= c {
		r.fits = append(r.fits, nil)
	}
	if r.fits[c] == nil {
		class := &w.q.classes[c]
		set := w.nodesOf(class).Clone()
		set.AndNot(r.full)
		set.Each(func(i int) {
			if !class.Ask.Fits(r.room[i]) {
				set.Remove(i)
			}
		})
		r.fits[c] = set
	}
	return r.fits[c]
}
