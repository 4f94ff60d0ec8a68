package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// How far last looks.
const (
	leastGroup   = 8      // nodes that are tried together at least
	mostRegroups = 32     // plans that are made
	fewRegroups  = 12     // and where there are many nodes, as each plan takes longer then
	regroupNodes = 24_000 // nodes, counted once for each plan, between the two
)

// eases are tried in this order: the more is left free, the less is saved.
var eases = [...]ease{{40, 4}, {50, 4}, {75, 6}, {100, 8}}

// ease is how much a plan leaves free, so that its pods find their places in whatever order kube-scheduler deals them out: how much of the
// room on nodes that stay, and how much more than they ask for each pod has, in percent. The zero value is a plan as it is.
type ease struct {
	nodes int64
	pods  int64
}

// last returns moves where there are no others: of large groups of nodes, with plans that leave some room free, for pods that come in
// the usual order. As many nodes as may go at once are tried, then the next, then fewer.
func (s *scene) last(order []int) []Move {
	s.arriving = usual
	most := s.made + s.p.perNode(regroupNodes, fewRegroups, mostRegroups)
	for size := largeGroup; size >= leastGroup; size /= 2 {
		for left := order; len(left) > 0 && s.made < most; {
			may := s.p.within(left)
			if len(may) <= size/2 {
				break
			}
			f := s.furtherTo(trial{}, may)
			f.regroup(may, size)
			f.confirm(nil)
			if out := f.together(); len(out) > 0 {
				return out
			}
			left = slices.DeleteFunc(slices.Clone(left), func(c int) bool { return slices.Contains(may, c) })
		}
	}
	return nil
}

// eased returns moves of these nodes as one group, as last may have found them in a larger one.
func (s *scene) eased(order []int) Result {
	s.arriving = usual
	f := s.furtherTo(trial{}, order)
	f.regroup(order, len(order))
	f.confirm(nil)
	return s.result(nil, f.together())
}

// regroup tries groups of that many nodes, in their order, as long as that comes to something.
func (f *further) regroup(order []int, size int) {
	for went := 1; went > 0; {
		var group []int
		group, order = f.next(order, size)
		went = 0
		for i := 0; i < len(eases) && len(group) > 0 && went == 0; i++ {
			went = f.try(group, eases[i])
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
		n.Requested = n.Requested.Add(resources.Amounts{CPU: max(free.CPU*e.nodes/100, 0), Memory: max(free.Memory*e.nodes/100, 0)})
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		p.Requests = p.Requests.Add(e.extra(p))
	}
}

// extra is what the pod asks for too much.
func (e ease) extra(p *cluster.Pod) resources.Amounts {
	return resources.Amounts{CPU: p.Requests.CPU * e.pods / 100, Memory: p.Requests.Memory * e.pods / 100}
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
