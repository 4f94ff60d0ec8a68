package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// plannedNode is a number of equal nodes to launch, each with the same pods.
type plannedNode struct {
	offer         int // the offering that it was filled for
	copies        int
	allocations   []allocation
	free          resources.Vector // free room of each copy
	ports         []int            // the lists of host ports in use, by number in podgroup.Queue.Ports
	host          topology.Tally
	hasDaemonPods bool    // the pods of its DaemonSets are counted in host
	value         float64 // total dual price of its pods, in billionths of a dollar per hour
	price         float64 // of the cheapest offering that fits its pods, in billionths of a dollar per hour
}

// allocation is a number of units of one class on one planned node.
type allocation struct {
	class, n  int
	acceptSet int // the accept set by which the class accepted the offering
}

// nodeWith returns a node of the offering with these pods, and the room that they leave.
func (pl *planner) nodeWith(offer int, allocations []allocation) plannedNode {
	shape := pl.stock.ShapeOf(offer)
	pn := plannedNode{offer: offer, allocations: allocations, free: shape.Room.Clone()}
	pn.ports = append(daemonPorts(shape), pn.podPorts(pl.q)...)
	pl.q.countDaemonPods(&pn)
	for _, a := range allocations {
		c := &pl.q.classes[a.class]
		pn.free.Take(c.Ask, a.n)
		pl.addToTally(&pn.host, c, a.n)
	}
	return pn
}

// valueOf returns the total dual price of the pods on the node.
func (pl *planner) valueOf(pn *plannedNode) float64 {
	value := 0.0
	for _, a := range pn.allocations {
		value += float64(a.n) * pl.dualPrice[a.class]
	}
	return value
}

// used returns the total requests of the pods on the node.
func (pn *plannedNode) used(pl *planner) resources.Vector {
	used := make(resources.Vector, len(pl.stock.Dims))
	for _, a := range pn.allocations {
		used.Take(pl.q.classes[a.class].Ask, -a.n)
	}
	return used
}

// daemonPorts returns the lists of host ports that DaemonSets use on a node of the shape.
func daemonPorts(s *offering.Shape) []int {
	if s.List == podgroup.NoPorts {
		return nil
	}
	return []int{s.List}
}

// hasPortConflict reports whether the class has a host port that is in one of the lists.
func (q *queue) hasPortConflict(c *class, lists []int) bool {
	return slices.ContainsFunc(c.Lists, func(list int) bool { return q.Ports.ClashAny(list, lists) })
}

// podPorts returns the lists of host ports of the pods on the node, without those of DaemonSets.
func (pn *plannedNode) podPorts(q *queue) (ports []int) {
	for _, a := range pn.allocations {
		ports = append(ports, q.classes[a.class].Lists...)
	}
	return ports
}
