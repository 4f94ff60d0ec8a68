package consolidation

import (
	"cmp"
	"maps"
	"slices"
)

// decline records a move that saves money, but less than MinWorth or its pools require. Of the moves with the same
// first node, it keeps the move with the greatest worth.
func (s *search) decline(m *Move) {
	if earlier, ok := s.declined[m.Nodes[0]]; ok && earlier.Worth >= m.Worth {
		return
	}
	declined := *m
	declined.PlannedNodes, declined.Placements = nil, nil
	s.declined[m.Nodes[0]] = declined
}

// declinedMoves returns the declined moves that have no node in common with the made moves, greatest worth first. A
// node is in at most one of the returned moves.
func (s *search) declinedMoves(made []Move) []Move {
	taken := map[string]bool{}
	take := func(m *Move) {
		for _, name := range m.Nodes {
			taken[name] = true
		}
	}
	for i := range made {
		take(&made[i])
	}
	all := slices.SortedFunc(maps.Values(s.declined), func(a, b Move) int {
		return cmp.Or(cmp.Compare(b.Worth, a.Worth), slices.Compare(a.Nodes, b.Nodes))
	})
	var out []Move
	for i := range all {
		if slices.ContainsFunc(all[i].Nodes, func(name string) bool { return taken[name] }) {
			continue
		}
		take(&all[i])
		out = append(out, all[i])
	}
	return out
}
