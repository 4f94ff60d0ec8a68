package consolidation

import (
	"slices"
)

const (
	// initialThresholdFactor is the ratio of the first threshold to the worth of removing all candidates.
	initialThresholdFactor = 3
	// minThresholdRatio is the minimum ratio of the first threshold to the lowest. If the ratio is less, Find uses only
	// the lowest threshold.
	minThresholdRatio = 1.2
)

// strategy searches for moves that remove some of the candidates of order. order has indices into problem.candidates;
// the strategy tries the first candidates first.
type strategy func(s *search, order []int) []Move

// Find returns the moves of the first strategy that finds any. Find is deterministic.
func Find(in Input) Result {
	s := newSearch(in)
	if len(s.p.candidates) == 0 || s.p.price == 0 {
		return Result{Price: s.p.price, Plans: s.plans}
	}
	s.planAll()
	if s.scarce && s.p.existingNodesAwaitPods() {
		return Result{Price: s.p.price, Target: s.target, Waits: true, Plans: s.plans}
	}
	var order []int
	order, s.wasteful = s.p.byWaste(s.all.plan)
	out := s.firstOf(order,
		// 1. if capacity is scarce: the single nodes that save most for their cost
		replaceForScarcity)
	for _, s.threshold = range s.thresholds() {
		if len(out.Moves) > 0 {
			break
		}
		out = s.firstOf(order,
			// 2. the candidates with the highest waste, all at once, and then small groups of other candidates
			removeWasteful,
			// 3. single nodes whose pods go to any other node, candidates included; with low churn also groups of up to
			// three nodes
			removeSingle,
			// 4. at the lowest threshold: groups of nodes and single nodes, with plans that leave headroom
			removeWithHeadroom,
			// 5. at the lowest threshold: a group of up to three nodes, whose pods are evicted one after the other
			removeOneByOne)
	}
	if len(out.Moves) == 0 {
		s.threshold = s.p.lowestThreshold()
		out = s.firstOf(order,
			// 6. nodes whose pods all fit one cheaper new node, or one node that stays
			replaceBundled)
	}
	out.Target = s.target
	return out
}

// firstOf returns the result of the first strategy that finds moves; if none does, the result of the last strategy.
func (s *search) firstOf(order []int, strategies ...strategy) Result {
	var out Result
	for _, find := range strategies {
		if out = s.result(find(s, order)); len(out.Moves) > 0 {
			break
		}
	}
	return out
}

// result returns the moves that remain schedulable when all of them are made at once, with the metrics of the search.
func (s *search) result(found []Move) Result {
	moves := s.keepEquivalentNodes(found)
	slices.SortFunc(moves, bySavingPerCost)
	kept := s.p.bestTogether(moves)
	if len(kept) < len(moves) { // without the dropped moves, the kept moves may violate a spread constraint
		nothingRemoved := attempt{removed: make([]bool, len(s.p.candidates)), plan: s.p.pendingPlan}
		kept = s.verifiedPrefix(nothingRemoved, kept)
	}
	out := Result{Moves: kept, Price: s.p.price, Plans: s.plans}
	nameNodes(out.Moves)
	for i := range out.Moves {
		out.Saving += out.Moves[i].Saving
	}
	out.Declined = s.declinedMoves(out.Moves)
	return out
}
