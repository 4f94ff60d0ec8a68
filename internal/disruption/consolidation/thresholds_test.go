package consolidation_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestMuchFirst: pods are moved for much before they are moved for little, and not for next to nothing at all.
func TestMuchFirst(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	onDemand := map[string]catalog.Price{catalog.OnDemand: cent}
	many := slices.Repeat([]int64{100}, 29)
	for name, c := range map[string]struct {
		full row // a cent less would do for its 29 pods
		want [][]string
	}{
		"a seventh for nearly all pods":   {full: row{4, catalog.OnDemand, 4 * cent, many}, want: [][]string{{"n1"}, {"n0"}}},
		"a fortieth, which is not enough": {full: row{4, catalog.OnDemand, 3*cent + cent/8, many}, want: [][]string{{"n1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := rows(shop(onDemand, 3, 4, 8), c.full, row{8, catalog.OnDemand, 8 * cent, []int64{1500}})
			for round := 0; ; round++ {
				var goes []string
				out := consolidation.Find(in)
				for _, m := range out.Moves {
					goes = append(goes, m.Nodes...)
				}
				switch {
				case round < len(c.want) && !slices.Equal(goes, c.want[round]):
					t.Fatalf("round %d: %v go, want %v", round, goes, c.want[round])
				case round == len(c.want) && len(goes) > 0:
					t.Fatalf("round %d: %v go, want none", round, goes)
				case round == len(c.want):
					return
				}
				in = done(t, in, out.Moves, round)
			}
		})
	}
}

// TestHighChurn: with high churn, the threshold is three times as high.
func TestHighChurn(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	onDemand := map[string]catalog.Price{catalog.OnDemand: cent}
	full := row{8, catalog.OnDemand, 8 * cent, slices.Repeat([]int64{260}, 29)}
	roomy := row{8, catalog.OnDemand, 8 * cent, []int64{5000}}
	for name, c := range map[string]struct {
		rows []row  // beside two full nodes at the market price
		want [2]int // moves without and with high churn
	}{
		"a third of its price for one pod":       {rows: []row{{8, catalog.OnDemand, 6 * cent, []int64{3900}}}, want: [2]int{1, 1}},
		"a third of its price for many":          {rows: []row{{8, catalog.OnDemand, 12 * cent, full.pods}}, want: [2]int{1, 1}},
		"a twelfth, which is gone with the next": {rows: []row{{8, catalog.OnDemand, 9*cent - cent/4, full.pods}}, want: [2]int{1, 0}},
		"nearly nothing":                         {rows: []row{{8, catalog.OnDemand, 8*cent + cent/10, full.pods}}, want: [2]int{0, 0}},
		"a small node, for room that others need": {rows: []row{roomy,
			{4, catalog.OnDemand, cent, slices.Repeat([]int64{20}, 29)}}, want: [2]int{1, 0}},
	} {
		in := rows(shop(onDemand, 4, 8), append([]row{full, full}, c.rows...)...)
		for i, want := range c.want {
			in.HighChurn = i == 1
			out := consolidation.Find(in)
			if len(out.Moves) != want {
				t.Errorf("%s, restless %v: %d moves, want %d: %+v", name, in.HighChurn, len(out.Moves), want, out.Moves)
			}
			if len(out.Moves) == 0 {
				continue
			}
			if again := consolidation.Revalidate(in, out.Moves[0].Nodes); len(again.Moves) != want {
				t.Errorf("%s, restless %v: %d moves when it is looked at again, want %d", name, in.HighChurn, len(again.Moves), want)
			}
		}
	}
}
