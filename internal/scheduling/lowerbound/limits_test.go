package lowerbound_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
)

// TestSuperfluousOffers has three offers. The second offer dominates the first and the third. The first has no room, so
// its limit must not apply to the third.
func TestSuperfluousOffers(t *testing.T) {
	t.Parallel()
	const d = catalog.Dollar
	p := lowerbound.Problem{
		Offers:  []lowerbound.Offer{{Price: d, Room: []int64{0}}, {Price: d, Room: []int64{1}}, {Price: 2 * d, Room: []int64{1}}},
		Sets:    [][]int{{0, 1, 2}},
		Demands: []lowerbound.Demand{{Count: 1, Ask: []int64{1}}},
	}
	for name, w := range map[string]lowerbound.DualPrices{"soft": lowerbound.Compute(p).Soft, "hard": lowerbound.Compute(p).Hard} {
		if least := w.PerPod[0] * (1 - 1e-9); w.PerNode[0] != 0 || w.PerNode[1] < least || w.PerNode[2] < least {
			t.Errorf("%s: dual price of a pod %.0f, limits of the offers %.0f; want limit 0 for the first offer, and at least the dual price for the others",
				name, w.PerPod[0], w.PerNode)
		}
	}
}
