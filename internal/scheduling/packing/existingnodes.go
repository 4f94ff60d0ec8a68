package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// placeOnExisting places pods on existing nodes. Higher priorities come first, then pods that no
// offering accepts, then the most expensive ones.
func (pl *planner) placeOnExisting(classes []int) {
	if len(pl.rooms.Nodes) == 0 || len(classes) == 0 {
		return
	}
	pl.priceClasses(pl.active())
	for before := -1; before < len(pl.placements); {
		before = len(pl.placements)
		for _, tier := range pl.tiersOf(classes) {
			// Every pass may change which node has the fewest pods of a spread.
			for _, pl.droppedWeightOnExisting = range pl.preferenceWeights(tier) {
				for pl.placeTier(tier, true) && pl.mayFollow(tier) {
				}
			}
			for pl.placeTier(tier, false) && pl.mayFollow(tier) {
			}
		}
		if classes = pl.affinityFollowers(); len(classes) == 0 {
			return // pods with affinity to pods of lower priority are placed after those
		}
	}
}

// affinityFollowers returns the classes with unplaced pods that have required host affinity.
func (pl *planner) affinityFollowers() []int {
	var out []int
	for _, c := range pl.order {
		if pl.left[c] > 0 && pl.q.profile(&pl.q.classes[c]).Follows() {
			out = append(out, c)
		}
	}
	return out
}

// mayFollow reports whether pods that were just placed may have made room for others, through host
// rules.
func (pl *planner) mayFollow(classes []int) bool {
	return slices.ContainsFunc(classes, func(c int) bool {
		return pl.left[c] > 0 && len(pl.q.profile(&pl.q.classes[c]).Host) > 0
	})
}

// placeTier fills the existing nodes in order with the classes of the tier, and reports whether it
// placed any. With preferred, it uses only nodes that satisfy their preferences.
func (pl *planner) placeTier(tier []int, preferred bool) bool {
	sets := pl.rooms.Hard
	if preferred {
		sets = pl.rooms.Liked
	}
	f := filler{planner: pl, left: pl.left, onExisting: true, strictPreferences: preferred}
	any := false
	open, waiting := pl.openNodes(tier, sets)
	var among []int
	for i := open.Next(0); i >= 0; i = open.Next(i + 1) {
		among = among[:0]
		for _, c := range tier {
			class := &pl.q.classes[c]
			if pl.left[c] > 0 && sets[class.Sig].Has(i) && (class.nodes == nil || class.nodes.Has(i)) {
				among = append(among, c)
			}
		}
		if len(among) == 0 || !f.fillExisting(i, among) {
			continue
		}
		any = true
		if pl.countWaiting(tier) <= waiting*7/8 {
			open, waiting = pl.openNodes(tier, sets)
		}
	}
	if any {
		pl.ground.FindFewest(pl.rooms, pl.q.Book, pl.ground.Counted)
	}
	return any
}

// fillExisting fills the existing node with pods of the classes, and reports whether it took any.
func (f *filler) fillExisting(node int, classes []int) bool {
	r := f.rooms
	pn := plannedNode{offer: -1, free: r.Room[node].Clone(), ports: r.Ports[node], host: r.Hosts[node].Clone()}
	f.fill(&pn, f.groupRows(classes))
	if len(pn.allocations) == 0 {
		return false
	}
	r.Set(node, pn.free, pn.ports, pn.host)
	for _, a := range pn.allocations {
		f.left[a.class] -= a.n
		f.placements = append(f.placements, existingPlacement{node: node, class: a.class, n: a.n})
	}
	return true
}

// openNodes returns the nodes that have room for a unit of some unplaced class and are in the set
// of its signature. waiting is the number of such classes.
func (pl *planner) openNodes(classes []int, sets []bitset.Set) (nodes bitset.Set, waiting int) {
	nodes = bitset.New(len(pl.rooms.Nodes))
	for _, c := range classes {
		if pl.left[c] > 0 {
			nodes.Or(pl.reachableNodes(c, sets[pl.q.classes[c].Sig]))
			waiting++
		}
	}
	return nodes, waiting
}

// reachableNodes returns the nodes of the set that have room for a unit of the class and that its
// own required host rules allow now. Placing pods may make more nodes reachable.
func (pl *planner) reachableNodes(c int, set bitset.Set) bitset.Set {
	out := pl.nodesWithRoom(c).Both(set)
	for _, r := range pl.q.profile(&pl.q.classes[c]).Host {
		switch {
		case r.Weight > 0:
		case r.Form == topology.Near:
			out.And(pl.rooms.Having(r.Group))
		case r.Form == topology.Apart:
			out.AndNot(pl.rooms.Having(r.Group))
		}
	}
	return out
}

// countWaiting returns how many of the classes have unplaced units.
func (pl *planner) countWaiting(classes []int) int {
	n := 0
	for _, c := range classes {
		if pl.left[c] > 0 {
			n++
		}
	}
	return n
}

// nodesWithRoom returns the nodes that accept a unit of the class and have room for it. The result
// is computed once per class. Room only shrinks, so later it may include nodes without room.
func (pl *planner) nodesWithRoom(c int) bitset.Set {
	for len(pl.roomCache) <= c {
		pl.roomCache = append(pl.roomCache, nil)
	}
	if pl.roomCache[c] == nil {
		class := &pl.q.classes[c]
		set := pl.acceptedNodes(class).Clone()
		set.AndNot(pl.rooms.Full)
		set.Each(func(i int) {
			if !class.Ask.Fits(pl.rooms.Room[i]) {
				set.Remove(i)
			}
		})
		pl.roomCache[c] = set
	}
	return pl.roomCache[c]
}
