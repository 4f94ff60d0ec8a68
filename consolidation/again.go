package consolidation

import "slices"

// Again returns the moves by which those nodes can go as things are now, and no others: for whoever has chosen among the moves
// of an earlier look. Each is worth it still; which of them belong together, and what is bought, may have changed. Names of
// nodes that may not go, or are not there, count for nothing.
func Again(in Input, nodes []string) Result {
	s := newScene(in)
	gone := make([]bool, len(s.candidates))
	for _, name := range nodes {
		if c, ok := s.byNode[name]; ok {
			gone[c] = true
		}
	}
	t := s.settle(s.try(gone))
	slices.SortFunc(t.moves, byWorth)
	out := Result{Moves: t.moves, Price: s.price, Trials: s.made}
	for i := range t.moves {
		out.Saving += t.moves[i].Saving
	}
	return out
}
