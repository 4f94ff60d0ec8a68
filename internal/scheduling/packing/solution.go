package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/bundle"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/dualprice"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// solution is the state of one planning attempt: the pods that were placed so far, and their existing
// or planned nodes. The steps that change it are splitter, bundle.Bundler, existingFiller, nodeChooser,
// reservationFiller, bindingFilter and retrier.
type solution struct {
	problem *pending.Problem
	queue   *pending.Queue // the classes, and the number of their unplaced units

	rooms *existing.Rooms         // existing nodes, updated with every placement
	topo  *existing.TopologyState // updated as pods are assigned to domains

	// The pods that were placed.
	placements []existingPlacement
	planned    []plannedNode
	remaining  []offering.RemainingLimits // by NodePool: its remaining limits

	// planFewest is, by group of a host spread, the minimum number of the group's pods on an existing or planned node.
	// It is set only while no further nodes are planned (topUpSpread). Nil means that a node without these pods can
	// always be launched.
	planFewest              map[int]existing.FewestPods
	droppedWeightOnExisting int            // preferences about hosts up to this weight are dropped while existing nodes are filled
	hostAssigned            map[int]bool   // groups over host names whose pods are bundled for one node
	domainCaps              map[string]int // by pending.PartKey: maximum number of units, known from earlier attempts

	nodeOffers *nodeOffers
	prices     *pricer
	facts      *classFacts
	work       *work

	// Caches.
	roomCache    []bitset.Set   // by class; see nodesWithRoom
	narrowedSets map[string]int // accept set of a part, by stageKey
	sizePrices   []float64      // by accept set: result of pricePerSize, -1 if not computed yet
}

// work counts the steps of a solution, and has their limit.
type work struct{ steps, limit int }

// existingPlacement is a number of units of one class on one existing node.
type existingPlacement struct {
	node     int // index in rooms
	class, n int
}

// newSolution starts a solution without placed pods. It copies the parts of the problem that the solution changes.
func newSolution(pr *pending.Problem, topo *existing.TopologyState) *solution {
	sol := &solution{
		problem: pr, queue: pr.Queue.ForSolution(pr), rooms: pr.Rooms.Clone(), topo: topo.Fork(),
		hostAssigned: map[int]bool{}, domainCaps: map[string]int{}, narrowedSets: map[string]int{},
		work: &work{limit: pr.Effort},
	}
	sol.nodeOffers = &nodeOffers{problem: pr, queue: sol.queue, aloneValues: map[aloneKey][]int{}}
	sol.prices = &pricer{problem: pr, queue: sol.queue, work: sol.work, solver: &dualprice.Pricer{
		Stock: pr.Stock, Accepts: pr.Accepts, Index: pr.Queue.Pods.Topology, Topology: sol.topo,
		Class:  func(number int) *podgroup.Class { return &sol.queue.Classes[number].Class },
		PodsOf: func(number int) int { return sol.queue.Classes[number].PodsPerUnit },
	}}
	sol.facts = &classFacts{problem: pr, queue: sol.queue}
	for _, p := range pr.Stock.Pools {
		sol.remaining = append(sol.remaining, p.Remaining.Clone())
	}
	return sol
}

func (sol *solution) bundler() bundle.Bundler {
	return bundle.New(sol.problem, sol.queue, sol.rooms, sol.topo, sol.hostAssigned)
}

func cloneRemaining(all []offering.RemainingLimits) []offering.RemainingLimits {
	out := make([]offering.RemainingLimits, len(all))
	for i := range all {
		out[i] = all[i].Clone()
	}
	return out
}

func (sol *solution) hasLimits() bool {
	return slices.ContainsFunc(sol.remaining, func(r offering.RemainingLimits) bool { return !r.Unlimited() })
}

// copiesAllowed returns how many nodes of the offering the NodePool's limits and the reservation
// allow, at most limit.
func (sol *solution) copiesAllowed(offer, limit int) int {
	if o := &sol.problem.Stock.Offers[offer]; o.IsReserved() {
		limit = min(limit, sol.unusedInstances(o.ReservationIndex))
	}
	return sol.remaining[sol.problem.Stock.VariantOf(offer).Pool].MaxNodes(sol.problem.Stock.TypeOf(offer).Capacity, limit)
}

// unusedInstances returns how many instances of the capacity reservation the plan does not use yet.
func (sol *solution) unusedInstances(reservation int) int {
	left := sol.problem.Stock.Reservations[reservation].Left
	for i := range sol.planned {
		if sol.problem.Stock.Offers[sol.planned[i].offer].ReservationIndex == reservation {
			left -= sol.planned[i].copies
		}
	}
	return max(left, 0)
}

// addPlanned adds the node to the plan, with as many copies as NodePool limits and pods allow, at most
// limit.
func (sol *solution) addPlanned(pn plannedNode, limit int) {
	pn.copies = sol.copiesAllowed(pn.offer, limit)
	for _, a := range pn.allocations {
		pn.copies = min(pn.copies, sol.queue.Left[a.class]/a.n)
	}
	sol.remaining[sol.problem.Stock.VariantOf(pn.offer).Pool].Subtract(sol.problem.Stock.TypeOf(pn.offer).Capacity, pn.copies)
	for _, a := range pn.allocations {
		sol.queue.Left[a.class] -= a.n * pn.copies
	}
	pn.price = sol.nodeOffers.cheapestPrice(&pn)
	sol.planned = append(sol.planned, pn)
}

func (sol *solution) addOutcome(o outcome) {
	sol.planned = append(sol.planned, o.planned...)
	sol.queue.Left, sol.remaining = o.left, o.remaining
}

// existingRoomFor estimates how many units of the class fit on the nodes in the set that accept its pods. The result
// is at most the number of the class's units. It ignores topology rules and host ports.
func (sol *solution) existingRoomFor(class *pending.Class, nodes bitset.Set) int {
	n, units := 0, class.Units()
	sol.rooms.Accepted[class.Sig].Intersection(nodes).Each(func(i int) {
		if n < units && !sol.rooms.Full.Has(i) {
			n += class.Ask.FitCount(sol.rooms.Room[i], units-n)
		}
	})
	return n
}

// hasPod reports whether the group counts a pod on an existing node. If so, no unplaced pod can be
// the group's first pod.
func (sol *solution) hasPod(group int) bool {
	return sol.topo.HasPod(sol.rooms, group)
}

// isHostFixed reports whether pods of the group already have a host, which other pods of the group must use
// too.
func (sol *solution) isHostFixed(group int) bool { return sol.hostAssigned[group] || sol.hasPod(group) }

// podLocation is a number of pods of one class on one existing or planned node.
type podLocation struct {
	class, bundle int // bundle: the class of the bundle that the pods belong to, or class itself
	host          int // index of the existing node; planned nodes follow after all existing ones
	n             int // number of pods, on all copies of the planned node
}

// podLocations returns the locations of all placed pods: one entry for each class on each node. The pods of a
// bundle are listed under their own class.
func (sol *solution) podLocations() []podLocation {
	var out []podLocation
	add := func(class, host, n int) {
		c := &sol.queue.Classes[class]
		if c.Members == nil {
			out = append(out, podLocation{class, class, host, n})
		}
		for _, m := range c.Members {
			out = append(out, podLocation{m.Class, class, host, n * m.N})
		}
	}
	for _, p := range sol.placements {
		add(p.class, p.node, p.n)
	}
	for i := range sol.planned {
		for _, a := range sol.planned[i].allocations {
			add(a.class, len(sol.rooms.Nodes)+i, a.n*sol.planned[i].copies)
		}
	}
	return out
}

// nodeWith returns a node of the offering with these pods, and its remaining room.
func (offers *nodeOffers) nodeWith(offer int, allocations []allocation) plannedNode {
	shape := offers.problem.Stock.ShapeOf(offer)
	pn := plannedNode{offer: offer, allocations: allocations, free: shape.Room.Clone()}
	pn.ports = append(daemonPorts(shape), pn.podPorts(offers.queue)...)
	pn.countDaemonPods(offers.queue)
	for _, a := range allocations {
		c := &offers.queue.Classes[a.class]
		pn.free.SubtractTimes(c.Ask, a.n)
		offers.queue.AddToHostCounts(&pn.host, c, a.n)
	}
	return pn
}

// plannedDemands returns the pods on planned nodes as demands. It ignores the preferences of the pods and the weights
// of the NodePools.
func (sol *solution) plannedDemands() []dualprice.Demand {
	units := map[dualprice.Demand]int{}
	for _, pn := range sol.planned {
		for _, a := range pn.allocations {
			sol.queue.AddBaseDemand(units, a.class, a.n*pn.copies)
		}
	}
	return dualprice.Sorted(units)
}
