package consolidation

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// trial is what comes of it if some nodes go.
type attempt struct {
	removed  []bool // by candidate
	plan     packing.Plan
	moves    []Move // those that are worth it
	complete bool   // all that went is in moves

	score  float64       // what moves save, less what moving is worth: as a share of the price of all candidates
	saving catalog.Price // what is saved where anything is, worth it or not
}

// try lets those candidates go, as far as it is worth it.
func (s *search) try(gone []bool) attempt {
	t := s.plan(gone)
	s.evaluateAttempt(&t)
	return t
}

// plan lets those candidates go, and does not say what it is worth.
func (s *search) plan(gone []bool) attempt {
	return attempt{removed: gone, plan: s.solve(s.snapshotWithout(gone))}
}

// judge finds the moves of the trial that are worth it.
func (s *search) evaluateAttempt(t *attempt) {
	stuck := s.p.unplaceable(t.plan)
	t.complete, t.score, t.saving, t.moves = true, 0, 0, nil
	for _, m := range s.p.splitIntoMoves(*t) {
		t.saving += max(m.Saving, 0)
		worth, ok := s.evaluate(&m, stuck)
		if !ok {
			t.complete = false
			continue
		}
		t.moves = append(t.moves, m)
		t.score += worth
	}
}

// stuck are the candidates of which a pod finds no place.
func (p *problem) unplaceable(plan packing.Plan) map[int]bool {
	out := map[int]bool{}
	for i := range plan.Refusals {
		if c, ok := p.byPod[plan.Refusals[i].Pod]; ok {
			out[c] = true
		}
	}
	return out
}

// fallApart returns the moves that the trial is made of, in the order of their first nodes. Nodes whose pods come onto one
// machine are one move. Machines that have pods of no candidate are none of ours; such pods waited before, and a machine
// for them alone would be bought in any case.
func (p *problem) splitIntoMoves(t attempt) []Move {
	sets := newDisjointSets(len(p.candidates))
	owner := make([]int, len(t.plan.Machines)) // of each machine: one of its candidates, or -1
	for i := range t.plan.Machines {
		owner[i] = -1
		for _, id := range t.plan.Machines[i].Pods {
			c, ok := p.byPod[id]
			switch {
			case !ok:
			case owner[i] < 0:
				owner[i] = c
			default:
				sets.union(owner[i], c)
			}
		}
	}
	at := map[int]int{} // by root: into out
	var out []Move
	for c, is := range t.removed {
		if !is {
			continue
		}
		i, known := at[sets.find(c)]
		if !known {
			i = len(out)
			at[sets.find(c)], out = i, append(out, Move{})
		}
		m, n := &out[i], &p.candidates[c]
		m.Nodes = append(m.Nodes, n.node.Name)
		m.Pods, m.Cost, m.Price = m.Pods+len(n.node.Pods), m.Cost+n.Cost, m.Price+n.Price
	}
	for i, c := range owner {
		if c >= 0 {
			m := &out[at[sets.find(c)]]
			m.Machines = append(m.Machines, t.plan.Machines[i])
		}
	}
	for _, placed := range t.plan.Placements {
		if c, ok := p.byPod[placed.Pod]; ok {
			m := &out[at[sets.find(c)]]
			m.Placements = append(m.Placements, placed)
		}
	}
	for i := range out {
		out[i].Saving = out[i].Price - priceOf(out[i].Machines)
	}
	return out
}

// priceOf is what the machines cost, each at its cheapest offering.
func priceOf(machines []packing.Machine) catalog.Price {
	var sum catalog.Price
	for i := range machines {
		sum += machines[i].Price()
	}
	return sum
}

// byWorth orders moves: the best saving for its cost first.
func byWorth(a, b Move) int {
	return cmp.Or(cmp.Compare(b.perCost(), a.perCost()), slices.Compare(a.Nodes, b.Nodes))
}

// perCost is what the move saves for each usual pod that it moves, and one more.
func (m *Move) perCost() float64 { return m.Saving.Dollars() / (m.Cost + 1) }

// sets are disjoint sets of numbers.
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

// join makes one set of those of both; its root is the lower one.
func (s disjointSets) union(i, j int) {
	a, b := s.find(i), s.find(j)
	s[max(a, b)] = min(a, b)
}
