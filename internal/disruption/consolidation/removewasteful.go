package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

const (
	halvings     = 6 // number of tried prefixes, each half as long as the one before
	refinements  = 4 // number of tried prefixes that are a little shorter or longer than the best
	verifyRounds = 4 // maximum number of plans for the remaining moves of an attempt
)

// removeWasteful removes the candidates with the highest waste, all at once, as far as their moves are worth it. Then
// it extends the best attempt by small groups of nodes.
func removeWasteful(s *search, order []int) []Move {
	s.plansBefore, s.arrivalOrder = s.plans, smallFirst
	best := attempt{removed: make([]bool, len(s.p.candidates))}
	removable := s.p.withinLimits(order)
	if len(removable) == len(order) {
		all := s.all
		if s.evaluateAttempt(&all); all.score > 0 {
			s.keepSchedulable(&all)
			best = all
		}
	}
	best = s.bestPrefix(best, removable, min(s.wasteful, len(removable)))
	best = s.verifyMoves(s.avoidEquivalentReplacements(best))
	return slices.Concat(best.moves, s.extend(best, order))
}

// tryPrefix removes the first n candidates of the order, as far as their moves are worth it. The plan does not depend
// on the threshold, so it is made once for each n.
func (s *search) tryPrefix(order []int, n int) attempt {
	t, known := s.prefixes[n]
	if !known {
		t = s.plan(s.p.prefix(order, n))
		s.prefixes[n] = t
	}
	s.evaluateAttempt(&t)
	return t
}

// bestPrefix tries prefixes of the order, and returns the attempt with the highest score: best, or the attempt of a
// prefix. It tries the whole order, then the first candidates that have any waste (wasteful is their number), then half
// of these and so on, and finally lengths near the best.
func (s *search) bestPrefix(best attempt, order []int, wasteful int) attempt {
	at, tried := len(order), map[int]bool{}
	try := func(n int) {
		isAll := n == len(s.p.candidates) // removeWasteful has evaluated s.all
		if n < 1 || n > len(order) || isAll || tried[n] {
			return
		}
		tried[n] = true
		if t := s.tryPrefix(order, n); t.score > best.score {
			if s.keepSchedulable(&t); t.score > best.score {
				best, at = t, n
			}
		}
	}
	n := wasteful
	try(len(order))
	for range halvings {
		try(n)
		n /= 2
	}
	gap := at / 4
	for range refinements / 2 {
		center := at
		try(center - gap)
		try(center + gap)
		gap /= 2
	}
	return best
}

// verifyMoves returns an attempt whose moves do not depend on moves that were left out: verify must accept the plan for
// the remaining moves alone. If verify does not, verifyMoves plans the removal of their nodes again. After verifyRounds
// such plans without success, it returns an attempt without moves.
func (s *search) verifyMoves(t attempt) attempt {
	for range verifyRounds {
		if t.complete || len(t.moves) == 0 {
			return t
		}
		gone := make([]bool, len(s.p.candidates))
		for i := range t.moves {
			for _, name := range t.moves[i].Nodes {
				gone[s.p.byNode[name]] = true
			}
		}
		if rest := s.p.restrict(t, gone); len(verify.Check(s.snapshotWithout(gone), s.p.in.Market, rest)) == 0 {
			return t
		}
		t = s.try(gone)
		s.keepSchedulable(&t)
	}
	if !t.complete {
		t.moves, t.score = nil, 0
	}
	return t
}
