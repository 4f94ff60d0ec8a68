package consolidation

// Again returns the moves by which those nodes can go as things are now, and no others: for whoever has chosen among the moves
// of an earlier look. Each is worth it still; which of them belong together, and what is bought, may have changed. Names of
// nodes that may not go, or are not there, count for nothing.
func Revalidate(in Input, nodes []string) Result {
	s := newSearch(in)
	if len(s.p.candidates) == 0 || s.p.price == 0 {
		return Result{Price: s.p.price, Plans: s.plans}
	}
	gone := make([]bool, len(s.p.candidates))
	for _, name := range nodes {
		if c, ok := s.p.byNode[name]; ok {
			gone[c] = true
		}
	}
	t := s.try(gone)
	s.keepSchedulable(&t)
	t = s.verifyMoves(t)
	var left []int
	for c, is := range gone {
		if is {
			left = append(left, c)
		}
	}
	s.planAll()
	out := s.result(t.moves, s.extend(t, left))
	if s.p.isSettled() { // what was found at rest, perhaps among others, and may be more than what is found of these nodes alone
		for _, find := range []func([]int) Result{s.atRest, s.removeAsOneGroup} {
			if rest := find(left); rest.Saving > out.Saving {
				out = rest
			}
		}
	}
	if len(out.Moves) == 0 {
		out = s.result(nil, s.replaceBundled(left))
	}
	if scarce := s.replaceForScarcity(left); scarce.Saving > out.Saving {
		return scarce
	}
	return out
}
