package consolidation_test

import (
	"math"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestDeclined: a move that saves too little for its pool is reported once with its worth, and only if it is not made.
func TestDeclined(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := shop(map[string]catalog.Price{catalog.OnDemand: cent}, 3, 4)
	fleet := func() consolidation.Input {
		return rows(market, row{4, catalog.OnDemand, 4 * cent, []int64{2900}}, row{4, catalog.OnDemand, 4 * cent, []int64{3900}})
	}
	isWorth := func(m consolidation.Move) { // an eighth of the price for half of the pods
		t.Helper()
		if len(m.Nodes) != 1 || m.Nodes[0] != "n0" || math.Abs(m.Worth-0.25) > 1e-9 {
			t.Errorf("%v is worth %v, want n0, worth 0.25", m.Nodes, m.Worth)
		}
	}
	in := fleet()
	rule(consolidation.Rule{LeastWorth: 0.5})(&in)
	out := consolidation.Find(in)
	if len(out.Moves) != 0 || len(out.Declined) != 1 {
		t.Fatalf("%d moves, %d declined, want one declined move", len(out.Moves), len(out.Declined))
	}
	isWorth(out.Declined[0])
	if m := out.Declined[0]; m.Saving != cent || m.PlannedNodes != nil || m.Placements != nil {
		t.Errorf("the move saves %s with %d planned nodes, want %s and none", m.Saving, len(m.PlannedNodes), cent)
	}
	out = consolidation.Find(fleet())
	if len(out.Moves) != 1 || len(out.Declined) != 0 {
		t.Fatalf("%d moves, %d declined, want one move", len(out.Moves), len(out.Declined))
	}
	isWorth(out.Moves[0])
}
