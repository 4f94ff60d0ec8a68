package consolidation

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

const maxEquivalentRounds = 4 // number of times that keepEquivalentNodes schedules the moves

// isEquivalent reports whether the planned node at its cheapest offering has the NodePool, node class, instance type,
// zone and capacity type of the candidate and is not cheaper. The candidate can then stay instead.
func (p *problem) isEquivalent(c *candidate, planned *packing.PlannedNode) bool {
	o, labels := &planned.Offerings[0], c.node.Labels
	return c.price > 0 && c.price <= o.Price && c.node.Pool == planned.Pool && c.node.NodeClass == planned.NodeClass &&
		labels[catalog.LabelInstanceType] == o.InstanceType && labels[catalog.LabelZone] == o.Zone &&
		labels[catalog.LabelCapacityType] == o.CapacityType
}

// equivalentNode returns the first candidate of the move's nodes that is equivalent to the planned node, -1 if there is
// none. Candidates in taken are ignored.
func (p *problem) equivalentNode(m *Move, plannedNode *packing.PlannedNode, taken map[int]bool) int {
	for _, name := range m.Nodes {
		if c := p.byNode[name]; !taken[c] && p.isEquivalent(&p.candidates[c], plannedNode) {
			return c
		}
	}
	return -1
}

// avoidEquivalentReplacements returns the attempt t, or a better attempt that keeps nodes which t would replace with
// equivalent nodes.
func (s *search) avoidEquivalentReplacements(t attempt) attempt {
	kept := map[int]bool{}
	for i := range t.moves {
		m := &t.moves[i]
		for k := range m.PlannedNodes {
			if c := s.p.equivalentNode(m, &m.PlannedNodes[k], kept); c >= 0 && len(m.Nodes) > 1 {
				kept[c] = true
			}
		}
	}
	if len(kept) == 0 {
		return t
	}
	gone := make([]bool, len(s.p.candidates))
	for i := range t.moves {
		for _, name := range t.moves[i].Nodes {
			gone[s.p.byNode[name]] = !kept[s.p.byNode[name]]
		}
	}
	other := s.try(gone)
	s.keepSchedulable(&other)
	if other.score > t.score {
		return other
	}
	return t
}

// keepEquivalentNodes changes moves that replace a node with an equivalent one: the move keeps the node instead, and
// the other pods of the planned node go to the kept node. If a changed move then has an unschedulable pod,
// keepEquivalentNodes returns this move unchanged. If an unchanged move then has an unschedulable pod, or after
// maxEquivalentRounds, keepEquivalentNodes returns all moves unchanged.
func (s *search) keepEquivalentNodes(moves []Move) []Move {
	out, isChanged := slices.Clone(moves), map[int]bool{} // isChanged: by index of the move
	for i := range out {
		if m, ok := s.keepEquivalentOf(&out[i]); ok {
			out[i], isChanged[i] = m, true
		}
	}
	for range maxEquivalentRounds {
		if len(isChanged) == 0 {
			return moves
		}
		failed := s.firstUnschedulable(out)
		if failed < 0 {
			return out
		}
		if !isChanged[failed] {
			return moves
		}
		delete(isChanged, failed)
		out[failed] = moves[failed]
	}
	return moves
}

// firstUnschedulable returns the first move with an unschedulable pod when the moves are made one after the other; -1
// if there is none.
func (s *search) firstUnschedulable(moves []Move) int {
	gone := map[string]bool{}
	for i := range moves {
		for _, name := range moves[i].Nodes {
			gone[name] = true
		}
	}
	sim := newSimulation(s.p.kinds, s.arrivalOrder, func(i int) nodeRole { return roleOf(gone[s.p.in.Snapshot.Nodes[i].Name]) })
	s.p.reservePending(sim)
	for i := range moves {
		if !s.p.schedule(sim, &moves[i]) {
			return i
		}
	}
	return -1
}

// keepEquivalentOf returns the move without the nodes that it would replace with equivalent nodes. It also reports
// whether the returned move differs from m and is worth it.
func (s *search) keepEquivalentOf(m *Move) (Move, bool) {
	out := *m
	for k := len(out.PlannedNodes) - 1; k >= 0 && len(out.Nodes) > 1; k-- { // a move removes at least one node
		plannedNode := &out.PlannedNodes[k]
		c := s.p.equivalentNode(&out, plannedNode, nil)
		if c < 0 || !s.p.hasRoomForAll(&s.p.candidates[c], plannedNode) {
			continue
		}
		kept := &s.p.candidates[c]
		out.Nodes = slices.DeleteFunc(slices.Clone(out.Nodes), func(name string) bool { return name == kept.node.Name })
		out.Pods, out.Cost, out.Price = out.Pods-len(kept.node.Pods), out.Cost-kept.cost, out.Price-kept.price
		out.Placements = slices.Clone(out.Placements)
		for _, id := range plannedNode.Pods {
			if s.p.byPod[id] != c {
				out.Placements = append(out.Placements, packing.Placement{Pod: id, Node: kept.node.Name})
			}
		}
		out.PlannedNodes = slices.Delete(slices.Clone(out.PlannedNodes), k, k+1)
	}
	if len(out.Nodes) == len(m.Nodes) {
		return *m, false
	}
	slices.SortFunc(out.Placements, func(a, b packing.Placement) int { return strings.Compare(a.Pod, b.Pod) })
	out.EvictionOrder = nil // it contains pods of the nodes that stay
	out.Saving = out.Price - priceOf(out.PlannedNodes)
	_, ok := s.evaluate(&out, nil)
	return out, ok
}

// hasRoomForAll reports whether all pods of the candidate are on the planned node, and the candidate has room for the
// other pods of the planned node. It returns false if the simulation cannot predict the node of one of these pods.
func (p *problem) hasRoomForAll(c *candidate, planned *packing.PlannedNode) bool {
	requests, ownPods := c.node.Requested, 0
	for _, id := range planned.Pods {
		from, known := p.byPod[id]
		if !known {
			return false // a pending pod: no move places it
		}
		n := p.candidates[from].node
		at := slices.IndexFunc(n.Pods, func(p cluster.Pod) bool { return p.ID() == id })
		if at < 0 || isConstrained(&n.Pods[at]) {
			return false
		}
		if n == c.node {
			ownPods++
			continue
		}
		requests = requests.Add(n.Pods[at].Requests)
	}
	return ownPods == len(c.node.Pods) && requests.Fits(c.node.Allocatable)
}
