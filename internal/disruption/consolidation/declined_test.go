package consolidation_test

import (
	"math"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestDeclined: a move that saves too little for the rule of its pool is in Declined once, with its worth. Without the
// rule, the move is made and not declined.
func TestDeclined(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 3, 4)
	fleet := func() consolidation.Input {
		return fleetOf(market, nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{2900}}, nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{3900}})
	}
	checkMove := func(m consolidation.Move) { // worth 0.25: it saves an eighth of the price and moves half of the pods
		t.Helper()
		if len(m.Nodes) != 1 || m.Nodes[0] != "n0" || math.Abs(m.Worth-0.25) > 1e-9 {
			t.Errorf("the move of %v has worth %v, want n0 with worth 0.25", m.Nodes, m.Worth)
		}
	}
	in := fleet()
	withRule(consolidation.Rule{LeastWorth: 0.5})(&in)
	out := consolidation.Find(in)
	if len(out.Moves) != 0 || len(out.Declined) != 1 {
		t.Fatalf("%d moves, %d declined, want one declined move", len(out.Moves), len(out.Declined))
	}
	checkMove(out.Declined[0])
	if m := out.Declined[0]; m.Saving != cent || m.PlannedNodes != nil || m.Placements != nil {
		t.Errorf("the declined move %+v, want saving %s, and neither planned nodes nor placements", m, cent)
	}
	out = consolidation.Find(fleet())
	if len(out.Moves) != 1 || len(out.Declined) != 0 {
		t.Fatalf("%d moves, %d declined, want one move", len(out.Moves), len(out.Declined))
	}
	checkMove(out.Moves[0])
}
