package consolidation_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestConcurrentMovesFit: no result has two moves whose pods would take each other's room if they arrive together.
func TestConcurrentMovesFit(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	node := func(pods ...int64) nodeSpec { return nodeSpec{4, catalog.OnDemand, 5 * cent, pods} } // a new one costs 4 cents
	for name, c := range map[string]struct {
		nodes []nodeSpec
		want  [][]string // removed nodes, by round
	}{
		"small pods take the room of the large pod": {
			nodes: []nodeSpec{node(2000, 2000), node(1000, 3000)}, want: [][]string{{"n0"}, {"n1"}},
		},
		"all pods fit": {nodes: []nodeSpec{node(2000, 2000), node(2000, 2000)}, want: [][]string{{"n0", "n1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fleetOf(marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4), c.nodes...)
			for round, want := range c.want {
				out := consolidation.Find(in)
				checkResult(t, in, out)
				var removed []string
				for _, m := range out.Moves {
					removed = append(removed, m.Nodes...)
				}
				slices.Sort(removed)
				if !slices.Equal(removed, want) {
					t.Fatalf("round %d: %v are removed, want %v", round, removed, want)
				}
				in = afterMoves(t, in, out.Moves, round)
			}
		})
	}
}
