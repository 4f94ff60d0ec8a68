package consolidation

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

const (
	maxSmallerPlans  = 12  // maximum number of plans of replaceBySmaller
	maxUnplacedShare = 0.3 // maximum share of a node's pods, by requests, that need a new node
)

// removeSingle removes single nodes whose pods go to any other node. These include candidates, to which the small
// groups of removeWasteful move no pods. With low churn, removeSingle also tries groups of up to three nodes.
func removeSingle(s *search, order []int) []Move {
	if s.scarce || !s.p.isSettled() {
		return nil
	}
	s.arrivalOrder = drainOrders
	x := s.newExtension(attempt{}, nil)
	x.removeOntoOthers(order)
	x.replaceBySmaller(order)
	if s.p.in.LowChurn {
		x.tryNodeGroups(order)
	}
	x.confirm(nil)
	return x.result()
}

// maxNodeChecks is the maximum number of times that a strategy checks whether a pod fits a node. The checks take less
// than a second.
const maxNodeChecks = 30_000_000

// removeOntoOthers adds moves of single nodes whose pods kube-scheduler would schedule on existing nodes. It makes no
// plans, because a plan would place the pods on other nodes than kube-scheduler does, and because there are too many
// candidates for a plan each.
func (x *extension) removeOntoOthers(order []int) {
	done := attempt{removed: make([]bool, len(x.p.candidates))}
	for checks := 0; len(order) > 0 && checks < maxNodeChecks; order = order[1:] {
		c := order[0]
		n := x.p.candidates[c].node
		m := Move{
			Nodes:  []string{n.Name},
			Pods:   len(n.Pods),
			Cost:   x.p.candidates[c].cost,
			Price:  x.p.candidates[c].price,
			Saving: x.p.candidates[c].price,
		}
		if x.isTaken(c) || x.removalsLeft(n.Pool) < 1 || slices.ContainsFunc(n.Pods, isNotSimulated) {
			continue
		}
		if _, ok := x.s.evaluate(&m, nil); !ok {
			continue
		}
		x.sim.cordon(n.Name, true)
		if x.sim.eachFitsAlone(n.Pods) {
			checks += len(n.Pods) * len(x.sim.nodes)
			m.Placements = x.placeOnExisting(&m, n.Pods)
		}
		if len(m.Placements) < len(n.Pods) || len(n.Pods) == 0 {
			x.sim.cordon(n.Name, false)
			continue
		}
		done.removed[c] = true
		done.plan.Placements = append(done.plan.Placements, m.Placements...)
		x.accept(&m)
	}
	x.seq.apply(done)
}

// isNotSimulated reports whether the simulation cannot predict the pod's node.
func isNotSimulated(p cluster.Pod) bool {
	return isConstrained(&p) && !followsRules(&p) || p.Unplannable != ""
}

// placeOnExisting schedules the move's pods on existing nodes, and returns their placements, sorted by pod. It returns
// nil if a pod would go to a planned node, or to no node. It also returns nil if capacity is scarce and the used room
// is worth more than the saving.
func (x *extension) placeOnExisting(m *Move, pods []cluster.Pod) []packing.Placement {
	before := x.valueOfFreeRoom()
	arrivals := x.sim.placeOnExisting(pods)
	if arrivals == nil {
		return nil
	}
	if before-x.valueOfFreeRoom() > m.Saving {
		x.sim.unbind(arrivals)
		return nil
	}
	out := make([]packing.Placement, len(arrivals))
	for i := range arrivals {
		out[i] = packing.Placement{Pod: arrivals[i].pod.ID(), Node: x.sim.nodes[arrivals[i].node].name}
	}
	slices.SortFunc(out, func(a, b packing.Placement) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// replaceBySmaller adds moves of single nodes whose pods mostly fit other nodes, so that the remaining pods need only a
// small new node.
func (x *extension) replaceBySmaller(order []int) {
	tries, checks := 0, 0
	for _, c := range order {
		n := x.p.candidates[c].node
		if tries == maxSmallerPlans || checks > maxNodeChecks {
			return
		}
		// Even without any new node, the removal would not be worth it.
		isHopeless := x.p.priceShare(x.p.candidates[c].price) < x.s.threshold*x.p.costShare(x.p.candidates[c].cost)
		if x.isTaken(c) || x.removalsLeft(n.Pool) < 1 || isHopeless || slices.ContainsFunc(n.Pods, isNotSimulated) {
			continue
		}
		checks += len(n.Pods) * len(x.sim.nodes)
		x.sim.cordon(n.Name, true)
		unplaced := x.sim.unplacedShare(n.Pods)
		x.sim.cordon(n.Name, false)
		if unplaced <= maxUnplacedShare {
			x.try([]int{c}, headroom{})
			tries++
		}
	}
}
