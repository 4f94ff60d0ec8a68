package packing

import (
	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

type existingFiller struct {
	queue  *pending.Queue
	rooms  *existing.Rooms
	topo   *existing.TopologyState
	prices *pricer
	sol    *solution
}

func newExistingFiller(sol *solution) existingFiller {
	return existingFiller{queue: sol.queue, rooms: sol.rooms, topo: sol.topo, prices: sol.prices, sol: sol}
}

// placeOnExisting places pods of the classes on existing nodes. Pods of higher priority are placed first. Of
// equal priority, pods that accept no offering come first, then pods with the highest dual price.
func (ef existingFiller) placeOnExisting(classes []int) {
	if len(ef.rooms.Nodes) == 0 || len(classes) == 0 {
		return
	}
	ef.prices.priceClasses(ef.queue.Active())
	for before := -1; before < len(ef.sol.placements); {
		before = len(ef.sol.placements)
		for _, tier := range ef.queue.TiersOf(classes) {
			// placeTier may change which node has the fewest pods of a spread, so nodes are filled again.
			for _, ef.sol.droppedWeightOnExisting = range ef.queue.PreferenceWeights(tier) {
				for ef.placeTier(tier, true) && ef.queue.MayPlaceMore(tier) {
				}
			}
			for ef.placeTier(tier, false) && ef.queue.MayPlaceMore(tier) {
			}
		}
		if classes = ef.queue.AffinityFollowers(); len(classes) == 0 {
			return // otherwise place pods that waited for pods of lower priority, to which they have affinity
		}
	}
}

// placeTier fills the existing nodes, one after the other, with pods of the classes of the tier, and reports
// whether it placed any. With preferred, a pod is placed only on nodes that satisfy its preferences.
func (ef existingFiller) placeTier(tier []int, preferred bool) bool {
	sets := ef.rooms.Accepted
	if preferred {
		sets = ef.rooms.Preferred
	}
	f := newFiller(ef.sol, ef.queue.Left)
	f.onExisting, f.strictPreferences = true, preferred
	hasFilled := false
	open, waiting := ef.openNodes(tier, sets)
	var candidates []int // classes that the node may take
	for i := open.Next(0); i >= 0; i = open.Next(i + 1) {
		candidates = candidates[:0]
		for _, c := range tier {
			class := &ef.queue.Classes[c]
			if ef.queue.Left[c] > 0 && sets[class.Sig].Has(i) && (class.Nodes == nil || class.Nodes.Has(i)) {
				candidates = append(candidates, c)
			}
		}
		if len(candidates) == 0 || !f.fillExisting(i, candidates) {
			continue
		}
		hasFilled = true
		if ef.queue.CountWaiting(tier) <= waiting*7/8 { // an eighth fewer classes wait, so far fewer nodes may be open
			open, waiting = ef.openNodes(tier, sets)
		}
	}
	if hasFilled {
		ef.topo.FindFewest(ef.rooms, ef.queue.Pods.Topology, ef.topo.Counted)
	}
	return hasFilled
}

// fillExisting fills the existing node with pods of the classes, and reports whether it placed any.
func (f *filler) fillExisting(node int, classes []int) bool {
	r := f.sol.rooms
	pn := plannedNode{offer: -1, free: r.Room[node].Clone(), ports: r.Ports[node], host: r.Hosts[node].Clone()}
	f.fill(&pn, f.facts.groupRows(classes))
	if len(pn.allocations) == 0 {
		return false
	}
	r.Set(node, pn.free, pn.ports, pn.host)
	for _, a := range pn.allocations {
		f.left[a.class] -= a.n
		f.sol.placements = append(f.sol.placements, existingPlacement{node: node, class: a.class, n: a.n})
	}
	return true
}

// openNodes returns the nodes that have room for a unit of some class with unplaced units, and are in the set of this
// class. sets has a set of nodes by signature. waiting is the number of classes with unplaced units.
func (ef existingFiller) openNodes(classes []int, sets []bitset.Set) (nodes bitset.Set, waiting int) {
	nodes = bitset.New(len(ef.rooms.Nodes))
	for _, c := range classes {
		if ef.queue.Left[c] > 0 {
			nodes.Or(ef.reachableNodes(c, sets[ef.queue.Classes[c].Sig]))
			waiting++
		}
	}
	return nodes, waiting
}

// reachableNodes returns the nodes of the set that have room for a unit of the class and that satisfy the class's own
// required host affinity and anti-affinity now. Placing pods may make more nodes reachable.
func (ef existingFiller) reachableNodes(c int, set bitset.Set) bitset.Set {
	out := ef.nodesWithRoom(c).Intersection(set)
	for _, r := range ef.queue.Profile(&ef.queue.Classes[c]).Host {
		switch {
		case r.Weight > 0: // a preference
		case r.Kind == topology.Affinity:
			out.And(ef.rooms.NodesWithPod(r.Group))
		case r.Kind == topology.AntiAffinity:
			out.AndNot(ef.rooms.NodesWithPod(r.Group))
		}
	}
	return out
}

// nodesWithRoom returns the nodes that accept a unit of the class and have room for the unit. The result is
// computed once per class. Room only shrinks, so a later result may include nodes that have no room any more.
func (ef existingFiller) nodesWithRoom(c int) bitset.Set {
	for len(ef.sol.roomCache) <= c {
		ef.sol.roomCache = append(ef.sol.roomCache, nil)
	}
	if ef.sol.roomCache[c] == nil {
		class := &ef.queue.Classes[c]
		set := class.AcceptedNodes(ef.sol.rooms).Clone()
		set.AndNot(ef.rooms.Full)
		set.Each(func(i int) {
			if !class.Ask.Fits(ef.rooms.Room[i]) {
				set.Remove(i)
			}
		})
		ef.sol.roomCache[c] = set
	}
	return ef.sol.roomCache[c]
}
