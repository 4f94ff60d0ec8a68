package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/packing"
)

// How far last looks.
const (
	leastGroup   = 8         // nodes that are tried together at least
	mostRegroups = 32        // plans that are made
	eased        = 5 * Usual // what a move is worth at least, as it moves many pods
)

// eases are tried in this order: the more is left free, the less is saved.
var eases = [...]ease{{25, 4}, {50, 4}, {75, 6}, {100, 10}}

// ease is how much a plan leaves free, so that its pods find their places in whatever order kube-scheduler deals them out: how much of the
// room on nodes that stay, and how much more than they ask for each pod has, in percent. The zero value is a plan as it is.
type ease struct {
	nodes int64
	pods  int64
}

// last returns moves where there are no others: of large groups of nodes, with plans that leave some room free, for pods that come in
// the usual order. While pods are on their way somewhere, too much is uncertain for that. Nodes that may go at once are tried, then the next.
func (s *scene) last(order []int) []Move {
	if len(s.alone.Placements)+len(s.alone.Machines) > 0 {
		return nil
	}
	s.arriving = usual
	for most := s.made + mostRegroups; len(order) > 0 && s.made < most; {
		may := s.within(order)
		if len(may) == 0 {
			return nil
		}
		f := s.furtherTo(trial{}, may)
		f.regroup(may, most)
		f.confirm(nil)
		if out := f.together(); len(out) > 0 {
			return out
		}
		order = slices.DeleteFunc(slices.Clone(order), func(c int) bool { return slices.Contains(may, c) })
	}
	return nil
}

// regroup tries groups of nodes, in their order. Groups that come to nothing are made smaller.
func (f *further) regroup(order []int, most int) {
	for size := largeGroup; len(order) > 0 && f.made < most; {
		group, rest := f.next(order, size)
		went := 0
		for i := 0; i < len(eases) && len(group) > 0 && went == 0; i++ {
			went = f.try(group, eases[i])
		}
		switch {
		case went > 0:
			order = rest
		case len(group) <= leastGroup:
			return
		default:
			size = len(group) / 2
		}
	}
}

// loosen lets pods ask for more than they do, and nodes that are there have less. Both belong to the caller.
func (e ease) loosen(s *cluster.Snapshot) {
	if e == (ease{}) {
		return
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		free := n.Allocatable.Sub(n.Requested)
		n.Requested = n.Requested.Add(capacity.Amounts{CPU: max(free.CPU*e.nodes/100, 0), Memory: max(free.Memory*e.nodes/100, 0)})
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		p.Requests = p.Requests.Add(e.extra(p))
	}
}

// extra is what the pod asks for too much.
func (e ease) extra(p *cluster.Pod) capacity.Amounts {
	return capacity.Amounts{CPU: p.Requests.CPU * e.pods / 100, Memory: p.Requests.Memory * e.pods / 100}
}

// tighten makes a plan for pods that asked for too much one for the pods as they are, which are known by their IDs.
func (e ease) tighten(plan *packing.Plan, known map[string]*cluster.Pod) {
	if e == (ease{}) {
		return
	}
	for i := range plan.Machines {
		m := &plan.Machines[i]
		for _, id := range m.Pods {
			if p := known[id]; p != nil {
				m.Requests = m.Requests.Sub(e.extra(p))
			}
		}
	}
}

// isWorth reports whether the move is worth it where a plan leaves room free.
func (e ease) isWorth(s *scene, m *Move) bool {
	return e == (ease{}) || s.share(m.Saving) >= eased*s.effort(m.Cost)
}
