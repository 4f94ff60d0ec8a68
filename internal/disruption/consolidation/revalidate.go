package consolidation

import "slices"

// Revalidate returns moves that remove some or all of the given nodes, and no other nodes. The caller calls Revalidate
// before it makes a move of an earlier result. Each returned move is worth it now. The grouping of nodes into moves and
// the planned nodes may differ from the earlier result. Names of nodes that do not exist or cannot be removed are
// ignored.
func Revalidate(in Input, nodes []string) Result {
	s := newSearch(in)
	if len(s.p.candidates) == 0 || s.p.price == 0 {
		return Result{Price: s.p.price, Plans: s.plans}
	}
	removed := make([]bool, len(s.p.candidates))
	for _, name := range nodes {
		if c, ok := s.p.byNode[name]; ok {
			removed[c] = true
		}
	}
	t := s.try(removed) // with threshold 0: only minWorth and the rules limit the moves
	s.keepSchedulable(&t)
	t = s.verifyMoves(t)
	s.planAll()
	order, _ := s.p.byWaste(s.all.plan) // like Find, so that the strategies form the same groups
	order = slices.DeleteFunc(order, func(c int) bool { return !removed[c] })
	out := s.result(slices.Concat(t.moves, s.extend(t, order)))
	// One of these strategies may have found the earlier move. That strategy may find a higher saving for these nodes
	// than the search above.
	for _, strategies := range [][]strategy{{removeSingle, removeOneByOne}, {removeWithHeadroom}, {removeAsOneGroup}} {
		if other := s.firstOf(order, strategies...); other.Saving > out.Saving {
			out = other
		}
	}
	if len(out.Moves) == 0 {
		out = s.firstOf(order, replaceBundled)
	}
	if other := s.firstOf(order, replaceForScarcity); other.Saving > out.Saving {
		return other
	}
	return out
}
