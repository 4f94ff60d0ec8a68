package consolidation_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestRemoveSingle: n0 has the highest waste and is the first candidate, but would be replaced with an equivalent node.
// So n0 stays, and the pods of n1 may use the free room of n0.
func TestRemoveSingle(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	node := func(cores int64, pods ...int64) nodeSpec {
		return nodeSpec{cores, catalog.OnDemand, catalog.Price(cores) * cent, pods}
	}
	for name, c := range map[string]struct {
		nodes     []nodeSpec
		change    func(*consolidation.Input)
		isRemoved bool // n1 is removed
		launches  int  // number of launched nodes
	}{
		"all pods fit":                  {nodes: []nodeSpec{node(4, 3000), node(1, 900)}, isRemoved: true},
		"some pods need a smaller node": {nodes: []nodeSpec{node(4, 3000), node(2, 900, 300)}, isRemoved: true, launches: 1},
		"most pods need a new node":     {nodes: []nodeSpec{node(4, 3000), node(2, 900, 850)}},
		"not enough room": {nodes: []nodeSpec{node(4, 3000), node(1, 900)},
			change: func(in *consolidation.Input) { in.Snapshot.Nodes[0].Requested.CPU = 3200 }}, // 800 are free
		"no removals allowed": {nodes: []nodeSpec{node(4, 3000), node(1, 900)},
			change: func(in *consolidation.Input) { in.MaxRemovals["general"] = 0 }},
		"another node terminates without pods": {nodes: []nodeSpec{node(4, 3000), node(1, 900), node(1)}, isRemoved: true,
			change: func(in *consolidation.Input) {
				in.Snapshot.Nodes[2].Leaving = true
			}},
		"another node terminates with a pod": {nodes: []nodeSpec{node(4, 3000), node(1, 900), node(1, 50)},
			change: func(in *consolidation.Input) {
				in.Snapshot.Nodes[2].Leaving = true
			}},
		"another node is stale with a pod": {nodes: []nodeSpec{node(4, 3000), node(1, 900), node(1, 50)},
			isRemoved: true, change: func(in *consolidation.Input) {
				in.Snapshot.Nodes[2].Leaving, in.Stale = true, map[string]bool{"n2": true}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fleetOf(marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 1, 2, 4), c.nodes...)
			in.MaxRemovals = map[string]int{"general": 1}
			if c.change != nil {
				c.change(&in)
			}
			out := consolidation.Find(in)
			checkResult(t, in, out)
			if !c.isRemoved {
				if len(out.Moves) > 0 {
					t.Fatalf("%v are removed, want none", out.Moves[0].Nodes)
				}
				return
			}
			if len(out.Moves) != 1 || !slices.Equal(out.Moves[0].Nodes, []string{"n1"}) ||
				len(out.Moves[0].PlannedNodes) != c.launches || out.Saving != cent {
				t.Fatalf("moves %+v save %s; want the move of n1 with %d planned nodes, saving %s", out.Moves, out.Saving, c.launches, cent)
			}
			if again := consolidation.Find(afterMoves(t, in, out.Moves, 0)); len(again.Moves) > 0 {
				t.Errorf("a second pass removes %v, want no moves", again.Moves[0].Nodes)
			}
		})
	}
}
