package consolidation_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/consolidation"
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
