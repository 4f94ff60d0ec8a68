package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// How far opened looks.
const (
	mostShrinks = 12  // plans that are made
	mostOver    = 0.3 // how much of a node's pods may need a machine
)

// opened returns moves where there are no others: of single nodes, whose pods go onto any of the others. Until then those that may go themselves
// are out of the way, with the room that they have; but now none of them goes. Nobody is on the way to another place, so that pods may be thought
// to come in the usual order.
func (s *scene) opened(order []int) []Move {
	if s.thrifty {
		return nil // see bargains
	}
	s.arriving = usual
	f := s.furtherTo(trial{}, nil)
	f.spill(order)
	f.shrink(order)
	if s.p.in.Steady {
		f.handfuls(order)
	}
	f.confirm(nil)
	return f.together()
}

// oneByOne returns a move where there are no others: of a handful whose pods find their places only if they leave in the right order, each when the one
// before has its place. It is made by itself: whoever came in between would take their places.
func (s *scene) oneByOne(order []int) []Move {
	if s.thrifty || !s.p.in.Steady || !s.p.in.InTurn {
		return nil
	}
	s.arriving = inTurn
	f := s.furtherTo(trial{}, nil)
	f.handfuls(order)
	if len(f.moves) > 1 { // a handful that falls apart: the nodes of the others stay, and take pods
		f.moves = f.moves[:1]
		f.gone = make([]bool, len(s.p.candidates))
		for _, name := range f.moves[0].Nodes {
			f.gone[s.p.byNode[name]] = true
		}
	}
	f.confirm(nil)
	return f.together()
}

// isCalm reports whether nobody is on the way to another place. A node that is on its way out keeps nobody waiting once its pods have left.
func (p *problem) isCalm() bool {
	return len(p.alone.Placements)+len(p.alone.Machines) == 0 && !slices.ContainsFunc(p.in.Snapshot.Nodes, func(n cluster.Node) bool {
		return n.Leaving && len(n.Pods) > 0 && !p.in.Stale[n.Name]
	})
}

// shrink adds moves of single nodes of which most pods find places on others, and the rest needs machines that are small.
func (f *further) shrink(order []int) {
	tries, deals := 0, 0
	for _, c := range order {
		n := f.p.candidates[c].node
		if tries == mostShrinks || deals > mostDeals {
			return
		}
		if f.stays(c) || f.room(n.Pool) < 1 || f.p.share(f.p.candidates[c].Price) < f.s.bar*f.p.effort(f.p.candidates[c].Cost) || slices.ContainsFunc(n.Pods, isBound) {
			continue
		}
		deals += len(n.Pods) * len(f.board.seats)
		f.board.shut(n.Name, true)
		over := f.board.overflow(n.Pods)
		f.board.shut(n.Name, false)
		if over <= mostOver {
			f.try([]int{c}, ease{})
			tries++
		}
	}
}

// overflow is how much of what the pods ask for is of such that find no place, when the large ones come first. The board is as it was afterwards.
func (b *board) overflow(pods []cluster.Pod) float64 {
	arrivals := make([]arrival, len(pods))
	for i := range pods {
		arrivals[i].pod = &pods[i]
	}
	mix(arrivals, 0)
	var seated []arrival
	all, over := 0.0, 0.0
	for i := range arrivals {
		bulk := arrivals[i].pod.Requests.Bulk()
		all += bulk
		if b.sit(&arrivals[i], nil) {
			seated = append(seated, arrivals[i])
		} else {
			over += bulk
		}
	}
	b.leave(seated)
	if all == 0 {
		return 0
	}
	return over / all
}
