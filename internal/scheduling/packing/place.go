package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// place gives the nodes that are there to the pods: those of higher priority
// first, then those that nothing on the market would take, then those that
// would cost most.
func (w *work) place(classes []int) {
	if len(w.rooms.Nodes) == 0 || len(classes) == 0 {
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
	sets := w.rooms.Hard
	if wish {
		sets = w.rooms.Liked
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
		w.ground.FindFewest(w.rooms, w.q.Book, w.ground.Counted)
	}
	return any
}

// put fills the node with pods of the classes, and reports whether it took any.
func (f *filler) put(node int, classes []int) bool {
	r := f.rooms
	m := machine{offer: -1, free: r.Room[node].Clone(), ports: r.Ports[node], host: r.Hosts[node].Clone()}
	f.fill(&m, f.shelve(classes))
	if len(m.takes) == 0 {
		return false
	}
	r.Set(node, m.free, m.ports, m.host)
	for _, t := range m.takes {
		f.left[t.class] -= t.n
		f.placed = append(f.placed, placed{node: node, class: t.class, n: t.n})
	}
	return true
}

// open returns the nodes that have room for a unit of some class with any left, and may
// take it according to the sets of its signature; and how many such classes there are.
func (w *work) open(classes []int, sets []bitset.Set) (nodes bitset.Set, waiting int) {
	nodes = bitset.New(len(w.rooms.Nodes))
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
func (w *work) reach(c int, set bitset.Set) bitset.Set {
	out := w.fitting(c).Both(set)
	for _, r := range w.q.profile(&w.q.classes[c]).Host {
		switch {
		case r.Weight > 0:
		case r.Form == topology.Near:
			out.And(w.rooms.Having(r.Group))
		case r.Form == topology.Apart:
			out.AndNot(w.rooms.Having(r.Group))
		}
	}
	return out
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
func (w *work) fitting(c int) bitset.Set {
	for len(w.fits) <= c {
		w.fits = append(w.fits, nil)
	}
	if w.fits[c] == nil {
		class := &w.q.classes[c]
		set := w.nodesOf(class).Clone()
		set.AndNot(w.rooms.Full)
		set.Each(func(i int) {
			if !class.Ask.Fits(w.rooms.Room[i]) {
				set.Remove(i)
			}
		})
		w.fits[c] = set
	}
	return w.fits[c]
}
