package consolidation

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// mostSpares is how often the moves are dealt out anew because one that spares a node finds no places.
const maxEquivalentRounds = 4

// isLike reports whether the machine, at its cheapest, would be what the candidate is, and no cheaper: then the candidate may as well stay.
func (p *problem) isEquivalent(c *candidate, m *packing.Machine) bool {
	o, has := &m.Offerings[0], c.node.Labels
	return c.Price > 0 && c.Price <= o.Price && c.node.Pool == m.Pool && c.node.NodeClass == m.NodeClass &&
		has[catalog.LabelInstanceType] == o.InstanceType && has[catalog.LabelZone] == o.Zone && has[catalog.LabelCapacityType] == o.CapacityType
}

// like returns the candidate among the nodes of the move that the machine is like, -1 if there is none; taken ones are passed over.
func (p *problem) equivalentNode(m *Move, machine *packing.Machine, taken map[int]bool) int {
	for _, name := range m.Nodes {
		if c := p.byNode[name]; !taken[c] && p.isEquivalent(&p.candidates[c], machine) {
			return c
		}
	}
	return -1
}

// replanned is the trial, or a better one in which those stay that it would have replaced by their like: pods come to them instead.
func (s *search) withoutEquivalents(t attempt) attempt {
	taken := map[int]bool{}
	for i := range t.moves {
		m := &t.moves[i]
		for k := range m.Machines {
			if c := s.p.equivalentNode(m, &m.Machines[k], taken); c >= 0 && len(m.Nodes) > 1 {
				taken[c] = true
			}
		}
	}
	if len(taken) == 0 {
		return t
	}
	gone := make([]bool, len(s.p.candidates))
	for i := range t.moves {
		for _, name := range t.moves[i].Nodes {
			gone[s.p.byNode[name]] = !taken[s.p.byNode[name]]
		}
	}
	other := s.try(gone)
	s.keepSchedulable(&other)
	if other.score > t.score {
		return other
	}
	return t
}

// spared returns the moves, and of those that would replace a node by its like, with all of its pods, what is left when the node stays and
// takes the other pods of that machine. Where kube-scheduler would not find all places then, a move stays as it was.
func (s *search) keepEquivalentNodes(moves []Move) []Move {
	out, isSpared := slices.Clone(moves), map[int]bool{}
	for i := range out {
		if m, ok := s.keepEquivalentOf(&out[i]); ok {
			out[i], isSpared[i] = m, true
		}
	}
	for range maxEquivalentRounds {
		if len(isSpared) == 0 {
			return moves
		}
		failed := s.firstUnschedulable(out)
		if failed < 0 {
			return out
		}
		if !isSpared[failed] {
			return moves
		}
		delete(isSpared, failed)
		out[failed] = moves[failed]
	}
	return moves
}

// unseated returns the first of the moves of which a pod finds no place when all are made, -1 if there is none.
func (s *search) firstUnschedulable(moves []Move) int {
	gone := map[string]bool{}
	for i := range moves {
		for _, name := range moves[i].Nodes {
			gone[name] = true
		}
	}
	b := newSimulation(s.p.in.Snapshot.Nodes, s.order, func(i int) bool { return gone[s.p.in.Snapshot.Nodes[i].Name] })
	s.p.reservePending(b)
	for i := range moves {
		if !s.p.schedule(b, &moves[i]) {
			return i
		}
	}
	return -1
}

// spare returns the move without the nodes that it would replace by their like, and whether there are any.
func (s *search) keepEquivalentOf(m *Move) (Move, bool) {
	out := *m
	for k := len(out.Machines) - 1; k >= 0 && len(out.Nodes) > 1; k-- {
		machine := &out.Machines[k]
		c := s.p.equivalentNode(&out, machine, nil)
		if c < 0 || !s.p.hasRoomForAll(&s.p.candidates[c], machine) {
			continue
		}
		stays := &s.p.candidates[c]
		out.Nodes = slices.DeleteFunc(slices.Clone(out.Nodes), func(name string) bool { return name == stays.node.Name })
		out.Pods, out.Cost, out.Price = out.Pods-len(stays.node.Pods), out.Cost-stays.Cost, out.Price-stays.Price
		out.Placements = slices.Clone(out.Placements)
		for _, id := range machine.Pods {
			if s.p.byPod[id] != c {
				out.Placements = append(out.Placements, packing.Placement{Pod: id, Node: stays.node.Name})
			}
		}
		out.Machines = slices.Delete(slices.Clone(out.Machines), k, k+1)
	}
	if len(out.Nodes) == len(m.Nodes) {
		return *m, false
	}
	slices.SortFunc(out.Placements, func(a, b packing.Placement) int { return strings.Compare(a.Pod, b.Pod) })
	out.EvictionOrder = nil // the pods of the nodes that stay are among them
	out.Saving = out.Price - priceOf(out.Machines)
	_, ok := s.evaluate(&out, nil)
	return out, ok
}

// takes reports whether the candidate has all of its pods on the machine, and room for the others that are there. Pods with rules about
// others are left where they were planned.
func (p *problem) hasRoomForAll(c *candidate, m *packing.Machine) bool {
	asked, own := c.node.Requested, 0
	for _, id := range m.Pods {
		from, known := p.byPod[id]
		if !known {
			return false // it waits, and is not the move's to place
		}
		n := p.candidates[from].node
		at := slices.IndexFunc(n.Pods, func(p cluster.Pod) bool { return p.ID() == id })
		if at < 0 || isNotSimulated(n.Pods[at]) {
			return false
		}
		if n == c.node {
			own++
			continue
		}
		asked = asked.Add(n.Pods[at].Requests)
	}
	return own == len(c.node.Pods) && asked.Fits(c.node.Allocatable)
}
