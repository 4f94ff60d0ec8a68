package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// How far last looks.
const (
	minLargeGroup       = 8      // nodes that are tried together at least
	maxLargeGroupPlans  = 32     // plans that are made
	minLargeGroupPlans  = 12     // and where there are many nodes, as each plan takes longer then
	largeGroupPlanNodes = 24_000 // nodes, counted once for each plan, between the two
)

// eases are tried in this order: the more is left free, the less is saved.
var headrooms = [...]headroom{{40, 4}, {50, 4}, {75, 6}, {100, 8}}

// ease is how much a plan leaves free, so that its pods find their places in whatever order kube-scheduler deals them out: how much of the
// room on nodes that stay, and how much more than they ask for each pod has, in percent. The zero value is a plan as it is.
type headroom struct {
	nodes int64
	pods  int64
}

// last returns moves where there are no others: of large groups of nodes, with plans that leave some room free, for pods that come in
// the usual order. As many nodes as may go at once are tried, then the next, then fewer.
func (s *search) removeLargeGroups(order []int) []Move {
	s.order = drainOrder
	most := s.plans + s.p.planLimit(largeGroupPlanNodes, minLargeGroupPlans, maxLargeGroupPlans)
	for size := largestGroupSize; size >= minLargeGroup; size /= 2 {
		for left := order; len(left) > 0 && s.plans < most; {
			may := s.p.withinLimits(left)
			if len(may) <= size/2 {
				break
			}
			f := s.newExtension(attempt{}, may)
			f.tryLargeGroups(may, size)
			f.confirm(nil)
			if out := f.result(); len(out) > 0 {
				return out
			}
			left = slices.DeleteFunc(slices.Clone(left), func(c int) bool { return slices.Contains(may, c) })
		}
	}
	return nil
}

// eased returns moves of these nodes as one group, as last may have found them in a larger one.
func (s *search) removeAsOneGroup(order []int) Result {
	s.order = drainOrder
	f := s.newExtension(attempt{}, order)
	f.tryLargeGroups(order, len(order))
	f.confirm(nil)
	return s.result(nil, f.result())
}

// regroup tries groups of that many nodes, in their order, as long as that comes to something.
func (f *extension) tryLargeGroups(order []int, size int) {
	for went := 1; went > 0; {
		var group []int
		group, order = f.nextGroup(order, size)
		went = 0
		for i := 0; i < len(headrooms) && len(group) > 0 && went == 0; i++ {
			went = f.try(group, headrooms[i])
		}
	}
}

// loosen lets pods ask for more than they do, and nodes that are there have less. Both belong to the caller.
func (e headroom) inflateRequests(s *cluster.Snapshot) {
	if e == (headroom{}) {
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
func (e headroom) extra(p *cluster.Pod) resources.Amounts {
	return resources.Amounts{CPU: p.Requests.CPU * e.pods / 100, Memory: p.Requests.Memory * e.pods / 100}
}

// tighten makes a plan for pods that asked for too much one for the pods as they are, which are known by their IDs.
func (e headroom) restoreRequests(plan *packing.Plan, known map[string]*cluster.Pod) {
	if e == (headroom{}) {
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
