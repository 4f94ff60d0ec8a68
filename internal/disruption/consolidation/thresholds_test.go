package consolidation_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestLargeSavingsFirst: moves with a large saving are made before moves with a small saving. Moves with a tiny saving
// are not made.
func TestLargeSavingsFirst(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	onDemand := map[string]catalog.Price{catalog.OnDemand: cent}
	many := slices.Repeat([]int64{100}, 29)
	for name, c := range map[string]struct {
		full nodeSpec   // n0: its 29 pods would fit a new node that costs 3 cents
		want [][]string // removed nodes, by round
	}{
		"n0 saves a cent":              {full: nodeSpec{4, catalog.OnDemand, 4 * cent, many}, want: [][]string{{"n1"}, {"n0"}}},
		"n0 saves an eighth of a cent": {full: nodeSpec{4, catalog.OnDemand, 3*cent + cent/8, many}, want: [][]string{{"n1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fleetOf(marketOf(onDemand, 3, 4, 8), c.full, nodeSpec{8, catalog.OnDemand, 8 * cent, []int64{1500}})
			for round := 0; ; round++ {
				var removed []string
				out := consolidation.Find(in)
				for _, m := range out.Moves {
					removed = append(removed, m.Nodes...)
				}
				switch {
				case round < len(c.want) && !slices.Equal(removed, c.want[round]):
					t.Fatalf("round %d: %v are removed, want %v", round, removed, c.want[round])
				case round == len(c.want) && len(removed) > 0:
					t.Fatalf("round %d: %v are removed, want none", round, removed)
				case round == len(c.want):
					return
				}
				in = afterMoves(t, in, out.Moves, round)
			}
		})
	}
}

// TestHighChurn: with high churn, the minimum worth of a move is three times as high. Names of cases have the saving as
// a share of the price of the replaced node.
func TestHighChurn(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	onDemand := map[string]catalog.Price{catalog.OnDemand: cent}
	full := nodeSpec{8, catalog.OnDemand, 8 * cent, slices.Repeat([]int64{260}, 29)}
	roomy := nodeSpec{8, catalog.OnDemand, 8 * cent, []int64{5000}}
	for name, c := range map[string]struct {
		more []nodeSpec // further nodes, besides two full nodes at the market price
		want [2]int     // moves without and with high churn
	}{
		"a third of the price, one pod":   {more: []nodeSpec{{8, catalog.OnDemand, 6 * cent, []int64{3900}}}, want: [2]int{1, 1}},
		"a third of the price, many pods": {more: []nodeSpec{{8, catalog.OnDemand, 12 * cent, full.pods}}, want: [2]int{1, 1}},
		"a twelfth of the price":          {more: []nodeSpec{{8, catalog.OnDemand, 9*cent - cent/4, full.pods}}, want: [2]int{1, 0}},
		"a tiny saving":                   {more: []nodeSpec{{8, catalog.OnDemand, 8*cent + cent/10, full.pods}}, want: [2]int{0, 0}},
		"small node whose pods fit others": {more: []nodeSpec{roomy,
			{4, catalog.OnDemand, cent, slices.Repeat([]int64{20}, 29)}}, want: [2]int{1, 0}},
	} {
		in := fleetOf(marketOf(onDemand, 4, 8), append([]nodeSpec{full, full}, c.more...)...)
		for i, want := range c.want {
			in.HighChurn = i == 1
			out := consolidation.Find(in)
			if len(out.Moves) != want {
				t.Errorf("%s, high churn %v: %d moves, want %d: %+v", name, in.HighChurn, len(out.Moves), want, out.Moves)
			}
			if len(out.Moves) == 0 {
				continue
			}
			if again := consolidation.Revalidate(in, out.Moves[0].Nodes); len(again.Moves) != want {
				t.Errorf("%s, high churn %v: %d moves after revalidation, want %d", name, in.HighChurn, len(again.Moves), want)
			}
		}
	}
}
