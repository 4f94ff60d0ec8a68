package consolidation

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// mostDeals is how many times spill looks whether a pod has room on a node: less than a second's work.
const maxNodeChecks = 30_000_000

// spill adds moves of single nodes whose pods kube-scheduler would deal out to nodes that stay, however thinly. No plan is made for
// that: a plan has the pods somewhere else than they will go, and there are too many nodes to make one for each.
func (f *extension) removeOntoOthers(order []int) {
	done := attempt{removed: make([]bool, len(f.p.candidates))}
	for deals := 0; len(order) > 0 && deals < maxNodeChecks; order = order[1:] {
		c := order[0]
		n := f.p.candidates[c].node
		m := Move{Nodes: []string{n.Name}, Pods: len(n.Pods), Cost: f.p.candidates[c].Cost, Price: f.p.candidates[c].Price, Saving: f.p.candidates[c].Price}
		if f.mustStay(c) || f.removalsLeft(n.Pool) < 1 || slices.ContainsFunc(n.Pods, isNotSimulated) {
			continue
		}
		if _, ok := f.s.evaluate(&m, nil); !ok {
			continue
		}
		f.sim.cordon(n.Name, true)
		if f.sim.fitsEach(n.Pods) {
			deals += len(n.Pods) * len(f.sim.nodes)
			m.Placements = f.placeOnExisting(&m, n.Pods)
		}
		if len(m.Placements) < len(n.Pods) || len(n.Pods) == 0 {
			f.sim.cordon(n.Name, false)
			continue
		}
		done.removed[c] = true
		done.plan.Placements = append(done.plan.Placements, m.Placements...)
		f.accept(&m)
	}
	f.seq.apply(done)
}

// isBound reports whether it is not for the board to say where the pod goes.
func isNotSimulated(p cluster.Pod) bool { return isConstrained(&p) || p.Unplannable != "" }

// deal gives the move's pods places on nodes that are there already, sorted by pod; none if one of them would go elsewhere, or if room is
// scarce and what they take of it is worth more than the move saves.
func (f *extension) placeOnExisting(m *Move, pods []cluster.Pod) []packing.Placement {
	room := f.valueOfFreeRoom()
	arrivals := f.sim.placeOnExisting(pods)
	if arrivals == nil {
		return nil
	}
	if room-f.valueOfFreeRoom() > m.Saving {
		f.sim.unbind(arrivals)
		return nil
	}
	out := make([]packing.Placement, len(arrivals))
	for i := range arrivals {
		out[i] = packing.Placement{Pod: arrivals[i].pod.ID(), Node: f.sim.nodes[arrivals[i].node].name}
	}
	slices.SortFunc(out, func(a, b packing.Placement) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// deal puts the pods on nodes that are there already, and returns where they are; nil, and nobody is there, if one of them would go elsewhere.
func (b *simulation) placeOnExisting(pods []cluster.Pod) []incomingPod {
	arrivals := make([]incomingPod, len(pods))
	for i := range pods {
		arrivals[i].pod = &pods[i]
	}
	if b.scheduleIf(arrivals, func(s *simNode) bool { return !s.planned }) != nil {
		return nil
	}
	return arrivals
}
