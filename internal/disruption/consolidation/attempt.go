package consolidation

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// attempt is a plan for the snapshot without some of the candidates, and the resulting moves that are worth it.
type attempt struct {
	removed  []bool // by candidate
	plan     packing.Plan
	moves    []Move // only moves that are worth it
	complete bool   // every removed candidate is in one of the moves

	// score is the sum, over all moves, of priceShare(saving) − threshold × costShare(cost).
	score float64
}

// try plans the removal of the candidates in gone and evaluates the attempt. gone has one entry per candidate.
func (s *search) try(gone []bool) attempt {
	t := s.plan(gone)
	s.evaluateAttempt(&t)
	return t
}

// plan plans the removal of the candidates in gone, without moves and score.
func (s *search) plan(gone []bool) attempt {
	return attempt{removed: gone, plan: s.solve(s.snapshotWithout(gone))}
}

func (s *search) evaluateAttempt(t *attempt) {
	stuck := s.p.unplaceable(t.plan)
	t.complete, t.score, t.moves = true, 0, nil
	for _, m := range s.p.splitIntoMoves(*t) {
		score, ok := s.evaluate(&m, stuck)
		if !ok {
			t.complete = false
			continue
		}
		t.moves = append(t.moves, m)
		t.score += score
	}
}

// unplaceable returns the candidates with a pod that the plan does not place.
func (p *problem) unplaceable(plan packing.Plan) map[int]bool {
	out := map[int]bool{}
	for i := range plan.Refusals {
		if c, ok := p.byPod[plan.Refusals[i].Pod]; ok {
			out[c] = true
		}
	}
	return out
}

// splitIntoMoves returns the independent moves of an attempt, in the order of their first nodes. Candidates whose pods
// share a planned node form one move. Planned nodes that only hold pending pods belong to no move: they are launched
// with or without the moves.
func (p *problem) splitIntoMoves(t attempt) []Move {
	sets := newDisjointSets(len(p.candidates))
	owner := make([]int, len(t.plan.PlannedNodes)) // by planned node: one of the candidates whose pods are on it, or -1
	for i := range t.plan.PlannedNodes {
		owner[i] = -1
		for _, id := range t.plan.PlannedNodes[i].Pods {
			c, ok := p.byPod[id]
			switch {
			case !ok: // a pending pod
			case owner[i] < 0:
				owner[i] = c
			default:
				sets.union(owner[i], c)
			}
		}
	}
	at := map[int]int{} // index into out, by representative of the set
	var out []Move
	for c, isRemoved := range t.removed {
		if !isRemoved {
			continue
		}
		i, known := at[sets.find(c)]
		if !known {
			i = len(out)
			at[sets.find(c)], out = i, append(out, Move{})
		}
		m, removed := &out[i], &p.candidates[c]
		m.Nodes = append(m.Nodes, removed.node.Name)
		m.Pods, m.Cost, m.Price = m.Pods+len(removed.node.Pods), m.Cost+removed.cost, m.Price+removed.price
	}
	for i, c := range owner {
		if c >= 0 {
			m := &out[at[sets.find(c)]]
			m.PlannedNodes = append(m.PlannedNodes, t.plan.PlannedNodes[i])
		}
	}
	for _, placed := range t.plan.Placements {
		if c, ok := p.byPod[placed.Pod]; ok {
			m := &out[at[sets.find(c)]]
			m.Placements = append(m.Placements, placed)
		}
	}
	for i := range out {
		out[i].Saving = out[i].Price - priceOf(out[i].PlannedNodes)
	}
	return out
}

// restrict returns the part of the attempt's plan that concerns the pods of the candidates in gone, and the pending
// pods.
func (p *problem) restrict(t attempt, gone []bool) packing.Plan {
	out := packing.Plan{Placements: slices.Clone(t.plan.Placements), Refusals: t.plan.Refusals}
	concerns := func(id string) bool {
		c, ok := p.byPod[id]
		return !ok || gone[c]
	}
	out.Placements = slices.DeleteFunc(out.Placements, func(p packing.Placement) bool { return !concerns(p.Pod) })
	out.Refusals = slices.DeleteFunc(slices.Clone(out.Refusals), func(r packing.Refusal) bool { return !concerns(r.Pod) })
	for _, planned := range t.plan.PlannedNodes {
		if concerns(planned.Pods[0]) { // gone has all candidates of a move or none
			out.PlannedNodes = append(out.PlannedNodes, planned)
			out.Price += planned.Price()
		}
	}
	return out
}

// priceOf returns the price of the planned nodes, each at its cheapest offering.
func priceOf(plannedNodes []packing.PlannedNode) catalog.Price {
	var sum catalog.Price
	for i := range plannedNodes {
		sum += plannedNodes[i].Price()
	}
	return sum
}

func bySavingPerCost(a, b Move) int {
	return cmp.Or(cmp.Compare(b.savingPerCost(), a.savingPerCost()), slices.Compare(a.Nodes, b.Nodes))
}

// savingPerCost returns the saving per unit of cost. One unit is added to the cost, so that moves whose cost is 0 can
// be compared.
func (m *Move) savingPerCost() float64 { return m.Saving.Dollars() / (m.Cost + 1) }

// disjointSets is a union-find structure.
type disjointSets []int

func newDisjointSets(n int) disjointSets {
	out := make(disjointSets, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (s disjointSets) find(i int) int {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

// union merges the sets of both elements; the lower representative remains.
func (s disjointSets) union(i, j int) {
	a, b := s.find(i), s.find(j)
	s[max(a, b)] = min(a, b)
}
