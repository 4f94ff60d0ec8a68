package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// How far opened looks.
const (
	maxSmallerPlans  = 12  // plans that are made
	maxUnplacedShare = 0.3 // how much of a node's pods may need a machine
)

// opened returns moves where there are no others: of single nodes, whose pods go onto any of the others. Until then those that may go themselves
// are out of the way, with the room that they have; but now none of them goes. Nobody is on the way to another place, so that pods may be thought
// to come in the usual order.
func (s *search) removeSingle(order []int) []Move {
	if s.scarce {
		return nil // see bargains
	}
	s.order = drainOrder
	f := s.newExtension(attempt{}, nil)
	f.removeOntoOthers(order)
	f.replaceBySmaller(order)
	if s.p.in.LowChurn {
		f.tryNodeGroups(order)
	}
	f.confirm(nil)
	return f.result()
}

// oneByOne returns a move where there are no others: of a handful whose pods find their places only if they leave in the right order, each when the one
// before has its place. It is made by itself: whoever came in between would take their places.
func (s *search) removeOneByOne(order []int) []Move {
	if s.scarce || !s.p.in.LowChurn || !s.p.in.OneAtATime {
		return nil
	}
	s.order = oneAtATime
	f := s.newExtension(attempt{}, nil)
	f.tryNodeGroups(order)
	if len(f.moves) > 1 { // a handful that falls apart: the nodes of the others stay, and take pods
		f.moves = f.moves[:1]
		f.removed = make([]bool, len(s.p.candidates))
		for _, name := range f.moves[0].Nodes {
			f.removed[s.p.byNode[name]] = true
		}
	}
	f.confirm(nil)
	return f.result()
}

// isCalm reports whether nobody is on the way to another place. A node that is on its way out keeps nobody waiting once its pods have left.
func (p *problem) isSettled() bool {
	return len(p.pendingPlan.Placements)+len(p.pendingPlan.Machines) == 0 && !slices.ContainsFunc(p.in.Snapshot.Nodes, func(n cluster.Node) bool {
		return n.Leaving && len(n.Pods) > 0 && !p.in.Stale[n.Name]
	})
}

// shrink adds moves of single nodes of which most pods find places on others, and the rest needs machines that are small.
func (f *extension) replaceBySmaller(order []int) {
	tries, deals := 0, 0
	for _, c := range order {
		n := f.p.candidates[c].node
		if tries == maxSmallerPlans || deals > maxNodeChecks {
			return
		}
		if f.mustStay(c) || f.removalsLeft(n.Pool) < 1 || f.p.priceShare(f.p.candidates[c].Price) < f.s.threshold*f.p.costShare(f.p.candidates[c].Cost) || slices.ContainsFunc(n.Pods, isNotSimulated) {
			continue
		}
		deals += len(n.Pods) * len(f.sim.nodes)
		f.sim.cordon(n.Name, true)
		over := f.sim.unplacedShare(n.Pods)
		f.sim.cordon(n.Name, false)
		if over <= maxUnplacedShare {
			f.try([]int{c}, headroom{})
			tries++
		}
	}
}

// overflow is how much of what the pods ask for is of such that find no place, when the large ones come first. The board is as it was afterwards.
func (b *simulation) unplacedShare(pods []cluster.Pod) float64 {
	arrivals := make([]incomingPod, len(pods))
	for i := range pods {
		arrivals[i].pod = &pods[i]
	}
	sortAsDrained(arrivals, 0)
	var seated []incomingPod
	all, over := 0.0, 0.0
	for i := range arrivals {
		bulk := arrivals[i].pod.Requests.Bulk()
		all += bulk
		if b.bind(&arrivals[i], nil) {
			seated = append(seated, arrivals[i])
		} else {
			over += bulk
		}
	}
	b.unbind(seated)
	if all == 0 {
		return 0
	}
	return over / all
}
