package consolidation

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// How far Find looks.
const (
	halvings     = 6 // halvings of the order of nodes
	refinements  = 4 // trials around the best of them
	verifyRounds = 4 // times that what is left of a trial is planned anew
)

const (
	// ambition is how many times as much a move must be worth at first as all moves together that lead to the target.
	initialThresholdFactor = 3
	// apart is how far above the last bar the first must be: else it is not worth looking twice.
	minThresholdRatio = 1.2
)

// Find returns the moves of the first strategy that finds any. The same input gives the same moves.
func Find(in Input) Result {
	s := newSearch(in)
	if len(s.p.candidates) == 0 || s.p.price == 0 {
		return Result{Price: s.p.price, Plans: s.plans}
	}
	fresh := s.planAll()
	if s.scarce && s.p.hasPodsInTransit() {
		return Result{Price: s.p.price, Target: s.target, Waits: true, Plans: s.plans}
	}
	order, wasteful := s.p.byWaste(fresh.plan)
	out := s.replaceForScarcity(order)
	for _, s.threshold = range s.thresholds() {
		if len(out.Moves) == 0 {
			out = s.removeWasteful(fresh, order, wasteful)
		}
		if len(out.Moves) == 0 && s.p.isSettled() {
			out = s.atRest(order)
		}
	}
	if len(out.Moves) == 0 {
		out = s.result(nil, s.replaceBundled(order))
	}
	out.Target = s.target
	return out
}

// aim plans for all candidates at once, and says what that would cost, and whether room is scarce.
func (s *search) planAll() attempt {
	all := make([]bool, len(s.p.candidates))
	for i := range all {
		all[i] = true
	}
	fresh := s.plan(all)
	s.target = max(priceOf(fresh.plan.Machines)-priceOf(s.p.pendingPlan.Machines), 0)
	s.scarce = s.isScarce()
	for i := range fresh.plan.Machines {
		s.bestTypes = append(s.bestTypes, fresh.plan.Machines[i].Offerings[0].InstanceType)
	}
	return fresh
}

// bars are what a move must be worth at least, whatever its pool asks for: what is not worth the next one is only looked at when nothing is
// worth the one before. Pods that are moved for little now are in the way of what moves them for more later.
func (s *search) thresholds() []float64 {
	if high := initialThresholdFactor * s.p.priceShare(s.p.price-s.target); high > minThresholdRatio*s.p.lowestThreshold() {
		return []float64{high, s.p.lowestThreshold()}
	}
	return []float64{s.p.lowestThreshold()}
}

// usual is the last bar.
func (p *problem) lowestThreshold() float64 { return MinWorth * p.churnFactor() }

// unrest is how many times as much as elsewhere each move must be worth.
func (p *problem) churnFactor() float64 {
	if p.in.HighChurn {
		return HighChurnFactor
	}
	return 1
}

// isLow reports whether the bar is the last one: then it is looked for moves with more patience.
func (s *search) isLowest() bool { return s.threshold <= s.p.lowestThreshold() }

// beyond looks for moves that are worth as much as the bar asks for; fresh is the trial in which all go.
func (s *search) removeWasteful(fresh attempt, order []int, wasteful int) Result {
	s.plansBefore, s.order = s.plans, smallFirst
	best := attempt{removed: make([]bool, len(s.p.candidates))}
	may := s.p.withinLimits(order)
	if len(may) == len(order) {
		if s.evaluateAttempt(&fresh); fresh.score > 0 {
			s.keepSchedulable(&fresh)
			best = fresh
		}
	}
	best = s.bestPrefix(best, may, min(wasteful, len(may)))
	best = s.verifyMoves(s.withoutEquivalents(best))
	return s.result(best.moves, s.extend(best, order))
}

// atRest looks for moves where there are no others, or those that there are would not come to their end, and nobody is on the way.
func (s *search) atRest(order []int) Result {
	out := s.result(nil, s.removeSingle(order))
	if len(out.Moves) == 0 && s.isLowest() {
		out = s.result(nil, s.removeLargeGroups(order))
	}
	if len(out.Moves) == 0 && s.isLowest() {
		out = s.result(nil, s.removeOneByOne(order))
	}
	return out
}

// result is the moves of the best trial, and more.
func (s *search) result(best, more []Move) Result {
	moves := s.keepEquivalentNodes(slices.Concat(best, more))
	slices.SortFunc(moves, byWorth)
	kept := s.p.bestTogether(moves)
	if len(kept) < len(moves) { // those that spread evenly with the others may not without
		kept = s.verified(attempt{removed: make([]bool, len(s.p.candidates)), plan: s.p.pendingPlan}, kept)
	}
	out := Result{Moves: kept, Price: s.p.price, Plans: s.plans}
	nameNodes(out.Moves)
	for i := range out.Moves {
		out.Saving += out.Moves[i].Saving
	}
	out.Declined = s.declinedMoves(out.Moves)
	return out
}

// order returns the candidates, the most waste for its cost first, and how many of them waste anything.
func (p *problem) byWaste(fresh packing.Plan) (order []int, wasteful int) {
	waste := make([]float64, len(p.candidates))
	for i := range p.candidates {
		waste[i] = p.candidates[i].Price.Dollars()
	}
	pods := map[string]*candidatePod{}
	for i := range p.pods {
		pods[p.pods[i].pod.ID()] = &p.pods[i]
	}
	for i := range fresh.Machines {
		m := &fresh.Machines[i]
		total := 0.0
		parts := make([]float64, len(m.Pods))
		for n, id := range m.Pods {
			if r := pods[id]; r != nil {
				parts[n] = requestShare(&r.pod, m)
			}
			total += parts[n]
		}
		for n, id := range m.Pods {
			if r := pods[id]; r != nil && total > 0 {
				waste[r.candidate] -= m.Price().Dollars() * parts[n] / total
			}
		}
	}
	order = make([]int, len(p.candidates))
	for i := range order {
		order[i] = i
	}
	value := func(c int) float64 { return waste[c] / (p.candidates[c].Cost + 1) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(value(b), value(a)) })
	for wasteful < len(order) && waste[order[wasteful]] > 0 {
		wasteful++
	}
	return order, wasteful
}

// part returns the pod's share of the planned node's requests: the mean over all resources except the number of pods, which is rarely the
// limit.
func requestShare(p *cluster.Pod, m *packing.Machine) float64 {
	sum, n := 0.0, 0
	for _, name := range m.Requests.Names() {
		if total := m.Requests.Of(name); total > 0 && name != resources.Pods {
			sum += float64(p.Requests.Of(name)) / float64(total)
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// first returns the first n of the order as those who go.
func (p *problem) prefix(order []int, n int) []bool {
	gone := make([]bool, len(p.candidates))
	for _, c := range order[:n] {
		gone[c] = true
	}
	return gone
}

// tryFirst lets the first n of the order go, as far as it is worth it. The plan for that does not depend on the bar, and is made once.
func (s *search) tryPrefix(order []int, n int) attempt {
	t, known := s.prefixes[n]
	if !known {
		t = s.plan(s.p.prefix(order, n))
		s.prefixes[n] = t
	}
	s.evaluateAttempt(&t)
	return t
}

// within returns those of the order that may go together: the first of each pool, as many as it has room for.
func (p *problem) withinLimits(order []int) []int {
	taken := map[string]int{}
	return slices.DeleteFunc(slices.Clone(order), func(c int) bool {
		pool := p.candidates[c].node.Pool
		room, bound := p.in.MaxRemovals[pool]
		taken[pool]++
		return bound && taken[pool] > room
	})
}

// search tries beginnings of the order of different lengths, and returns the best trial.
func (s *search) bestPrefix(best attempt, order []int, wasteful int) attempt {
	at, tried := len(order), map[int]bool{}
	try := func(n int) {
		if n < 1 || n > len(order) || n == len(s.p.candidates) || tried[n] {
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

// settle makes sure that the moves of a trial need none of those that were left out: the checker must accept the plan that is left. If
// it does not, they are planned by themselves.
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
		if left := s.p.restrict(t, gone); len(verify.Check(s.snapshotWithout(gone), s.p.in.Market, left)) == 0 {
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

// rest is the plan of the trial for those who are gone.
func (p *problem) restrict(t attempt, gone []bool) packing.Plan {
	out := packing.Plan{Placements: slices.Clone(t.plan.Placements), Refusals: t.plan.Refusals}
	goes := func(id string) bool {
		c, ok := p.byPod[id]
		return !ok || gone[c]
	}
	out.Placements = slices.DeleteFunc(out.Placements, func(p packing.Placement) bool { return !goes(p.Pod) })
	out.Refusals = slices.DeleteFunc(slices.Clone(out.Refusals), func(r packing.Refusal) bool { return !goes(r.Pod) })
	for _, m := range t.plan.Machines {
		if goes(m.Pods[0]) {
			out.Machines = append(out.Machines, m)
			out.Price += m.Price()
		}
	}
	return out
}
