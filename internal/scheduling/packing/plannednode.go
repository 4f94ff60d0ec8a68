package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// plannedNode is a number of equal nodes to launch, each with the same pods.
type plannedNode struct {
	offer         int // the offering for which the node was filled; -1 for an existing node
	copies        int // number of equal nodes
	allocations   []allocation
	free          resources.Vector    // free room of each copy
	ports         []int               // lists of host ports in use, as numbers in podgroup.Queue.Ports
	host          topology.HostCounts // pods of each copy, by group of a host rule
	hasDaemonPods bool                // whether host includes the DaemonSet pods
	value         float64             // total dual price of the pods of each copy, in billionths of a dollar per hour
	price         float64             // price of the cheapest offering that fits these pods, in billionths of a dollar per hour
}

// allocation is a number of units of one class on one planned node.
type allocation struct {
	class, n  int
	acceptSet int // accept set of the class when its units were placed; it includes the node's offering
}

func (pc *pricer) valueOf(pn *plannedNode) float64 {
	value := 0.0
	for _, a := range pn.allocations {
		value += float64(a.n) * pc.dualPrice[a.class]
	}
	return value
}

// used returns the total requests of the pods on the node.
func (offers *nodeOffers) used(pn *plannedNode) resources.Vector {
	used := make(resources.Vector, len(offers.problem.Stock.Dims))
	for _, a := range pn.allocations {
		used.SubtractTimes(offers.queue.Classes[a.class].Ask, -a.n)
	}
	return used
}

// daemonPorts returns the number of the list of host ports that DaemonSets use on a node of the shape, if any.
func daemonPorts(s *offering.Shape) []int {
	if s.PortList == podgroup.NoPorts {
		return nil
	}
	return []int{s.PortList}
}

// podPorts returns the numbers of the lists of host ports of the pods on the node, except DaemonSet pods.
func (pn *plannedNode) podPorts(q *pending.Queue) (ports []int) {
	for _, a := range pn.allocations {
		ports = append(ports, q.Classes[a.class].PortLists...)
	}
	return ports
}

// countDaemonPods sets the node's host counts to the DaemonSet pods of its offering, unless they are included
// already. It must be called before other pods are counted.
func (pn *plannedNode) countDaemonPods(q *pending.Queue) {
	if q.DaemonPods == nil || pn.hasDaemonPods || pn.offer < 0 {
		return
	}
	pn.hasDaemonPods, pn.host = true, q.DaemonPods.On(pn.offer)
}

// matchedPods returns the number of pods that the group counts on one copy of the planned node.
func (pn *plannedNode) matchedPods(q *pending.Queue, group int) int {
	pn.countDaemonPods(q)
	return pn.host.Matched(group)
}

// clone returns a copy that can be filled independently.
func (pn *plannedNode) clone() plannedNode {
	out := *pn
	out.free, out.allocations, out.ports, out.host = pn.free.Clone(), slices.Clone(pn.allocations), slices.Clip(pn.ports), pn.host.Clone()
	return out
}

// unitsAt returns the units in the i-th allocation; 0 if there is none.
func (pn *plannedNode) unitsAt(i int) int {
	if i < len(pn.allocations) {
		return pn.allocations[i].n
	}
	return 0
}

func (pn *plannedNode) unitsOf(class int) int {
	for i := range pn.allocations {
		if pn.allocations[i].class == class {
			return pn.allocations[i].n
		}
	}
	return 0
}
