package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

const (
	minLargeGroup     = 8      // minimum number of nodes of a group, unless churn is low (see smallestGroup)
	maxHeadroomPlans  = 32     // plan limit if there are few candidates
	minHeadroomPlans  = 12     // plan limit if there are many candidates
	headroomPlanNodes = 24_000 // plan limit × candidates, unless the minimum or maximum applies (see planLimit)
)

// headrooms are tried in this order. More headroom saves less, but makes it more likely that all pods are schedulable.
// The first number is for nodes, the second for pods.
var headrooms = [...]headroom{{20, 2}, {40, 4}, {50, 4}, {75, 6}, {100, 8}}

// headroom is the room that a plan leaves free, so that its pods are schedulable in any order. The zero value leaves
// nothing free.
type headroom struct {
	nodes int64 // reduction of the free room of existing nodes, in percent
	pods  int64 // increase of each pod's requests, in percent
}

// removeWithHeadroom removes groups of nodes. Its plans leave headroom, because the moved pods must be schedulable in
// every simulated drain order (see drainOrders). The largest groups are tried first and, with low churn, single nodes
// last: the disruption budgets of a small fleet often allow only one node at a time.
func removeWithHeadroom(s *search, order []int) []Move {
	if !s.p.isSettled() || !s.isLowest() {
		return nil
	}
	s.arrivalOrder = drainOrders
	maxPlans := s.plans + s.p.planLimit(headroomPlanNodes, minHeadroomPlans, maxHeadroomPlans)
	for size := largestGroupSize; size >= s.p.smallestGroup(); size /= 2 {
		for left := order; len(left) > 0 && s.plans < maxPlans; {
			removable := s.p.withinLimits(left)
			if len(removable) <= size/2 { // the next size is large enough
				break
			}
			x := s.newExtension(attempt{}, removable)
			x.tryGroups(removable, size)
			x.confirm(nil)
			if out := x.result(); len(out) > 0 {
				return out
			}
			left = slices.DeleteFunc(slices.Clone(left), func(c int) bool { return slices.Contains(removable, c) })
		}
	}
	return nil
}

// smallestGroup returns the minimum number of nodes of a group that is planned with headroom: 1 with low churn. While
// pods come and go, the replacement nodes of small groups would soon block moves that save more.
func (p *problem) smallestGroup() int {
	if p.in.LowChurn {
		return 1
	}
	return minLargeGroup
}

// removeAsOneGroup removes the nodes of the order as one group. It is a strategy of Revalidate: removeWithHeadroom may
// have found the move of these nodes in a group of another size.
func removeAsOneGroup(s *search, order []int) []Move {
	if !s.p.isSettled() {
		return nil
	}
	s.arrivalOrder = drainOrders
	x := s.newExtension(attempt{}, order)
	x.tryGroups(order, len(order))
	x.confirm(nil)
	return x.result()
}

// tryGroups tries groups of the given size, in the order of the candidates. It ends with the first group of which
// no node can be removed.
func (x *extension) tryGroups(order []int, size int) {
	for removed := 1; removed > 0; {
		var group []int
		group, order = x.nextGroup(order, size)
		removed = 0
		for i := 0; i < len(headrooms) && len(group) > 0 && removed == 0; i++ {
			removed = x.try(group, headrooms[i])
		}
	}
}

// inflateRequests increases the requests of the pending pods, and the requests on the nodes, in the snapshot. The
// caller must own the slices of the snapshot.
func (h headroom) inflateRequests(s *cluster.Snapshot) {
	if h == (headroom{}) {
		return
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		free := n.Allocatable.Sub(n.Requested)
		n.Requested = n.Requested.Add(resources.Amounts{CPU: max(free.CPU*h.nodes/100, 0), Memory: max(free.Memory*h.nodes/100, 0)})
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		p.Requests = p.Requests.Add(h.extra(p))
	}
}

func (h headroom) extra(p *cluster.Pod) resources.Amounts {
	return resources.Amounts{CPU: p.Requests.CPU * h.pods / 100, Memory: p.Requests.Memory * h.pods / 100}
}

// restoreRequests removes the additions from a plan that was made with inflated requests. known has the pods by ID.
func (h headroom) restoreRequests(plan *packing.Plan, known map[string]*cluster.Pod) {
	if h == (headroom{}) {
		return
	}
	for i := range plan.PlannedNodes {
		m := &plan.PlannedNodes[i]
		for _, id := range m.Pods {
			if p := known[id]; p != nil {
				m.Requests = m.Requests.Sub(h.extra(p))
			}
		}
	}
}
