package consolidation_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// TestReplaceWithOneNode: a node with pods that would be unschedulable on the other nodes is replaced with one node
// that holds all its pods, if the new node is cheaper.
func TestReplaceWithOneNode(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	node := func(price catalog.Price, pods ...int64) nodeSpec { return nodeSpec{4, catalog.OnDemand, price, pods} }
	// The other nodes have room for the pods of n0, but the small pod takes the room of the large one.
	fleet := func() consolidation.Input {
		return fleetOf(marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4),
			node(5*cent, 1900, 1000), node(4*cent, 2000), node(4*cent, 2900))
	}
	pod := func(in *consolidation.Input, i int) *cluster.Pod { return &in.Snapshot.Nodes[0].Pods[i] }
	arch := func(values ...string) []requirements.Requirements {
		return []requirements.Requirements{{catalog.LabelArch: requirements.OneOf(values...)}}
	}
	for name, c := range map[string]struct {
		change func(*consolidation.Input)
		want   bool // n0 is replaced
	}{
		"cheaper":             {want: true},
		"same price":          {change: func(in *consolidation.Input) { in.Nodes["n0"] = consolidation.Candidate{Price: 4 * cent, Cost: 2} }},
		"no removals allowed": {change: func(in *consolidation.Input) { in.MaxRemovals = map[string]int{"general": 0} }},
		"one removal allowed": {change: func(in *consolidation.Input) { in.MaxRemovals = map[string]int{"general": 1} }, want: true},
		"compatible requirements": {change: func(in *consolidation.Input) {
			pod(in, 0).Required, pod(in, 1).Required = arch("amd64", "arm64"), arch("amd64")
		}, want: true},
		"one pod without requirements": {change: func(in *consolidation.Input) { pod(in, 1).Required = arch("amd64") }, want: true},
		"contradicting requirements": {change: func(in *consolidation.Input) {
			pod(in, 0).Required, pod(in, 1).Required = arch("arm64"), arch("amd64")
		}},
		"one pod tolerates more taints": {change: func(in *consolidation.Input) {
			pod(in, 0).Tolerations = []requirements.Toleration{{Operator: "Exists"}}
		}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fleet()
			in.Nodes = map[string]consolidation.Candidate{"n0": in.Nodes["n0"]}
			if c.change != nil {
				c.change(&in)
			}
			out := consolidation.Find(in)
			checkResult(t, in, out)
			if len(out.Moves) > 0 != c.want {
				t.Fatalf("moves %+v, want a move: %v", out.Moves, c.want)
			}
			if c.want && (len(out.Moves[0].PlannedNodes) != 1 || out.Saving != cent) {
				t.Errorf("the move launches %d nodes and saves %s, want 1 and %s", len(out.Moves[0].PlannedNodes), out.Saving, cent)
			}
		})
	}
}

// TestFullFleetAfterPriceCut: in a full fleet whose instance types have become cheaper, each pass replaces as many
// nodes as MaxRemovals allows, until all are replaced.
func TestFullFleetAfterPriceCut(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	const count, limit = 30, 4 // of nodes, and MaxRemovals
	var all []nodeSpec
	for n := range int64(count) {
		all = append(all, nodeSpec{4, catalog.OnDemand, 5 * cent, []int64{700 + 10*n, 900, 950, 1000}})
	}
	in := fleetOf(marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4), all...)
	for round, left := 0, count; left > 0; round, left = round+1, left-limit {
		want := min(left, limit)
		in.MaxRemovals = map[string]int{"general": limit}
		out := consolidation.Find(in)
		checkResult(t, in, out)
		gone := 0
		for _, m := range out.Moves {
			gone += len(m.Nodes)
		}
		if gone != want || out.Saving != catalog.Price(want)*cent {
			t.Fatalf("round %d: %d nodes are removed, which saves %s; want %d nodes, saving %s", round, gone, out.Saving,
				want, catalog.Price(want)*cent)
		}
		in = afterMoves(t, in, out.Moves, round)
	}
	if out := consolidation.Find(in); len(out.Moves) > 0 {
		t.Fatalf("a move is left, want none: %+v", out.Moves[0])
	}
}

// TestRevalidate: for the nodes of some moves of a result, Revalidate returns moves that are valid without the other
// moves of that result.
func TestRevalidate(t *testing.T) {
	t.Parallel()
	market := smallMarket(t)
	rapid.Check(t, func(t *rapid.T) {
		in := drawFleet(t, market)
		d := dice(rapid.Uint64().Draw(t, "seed of the choice"))
		var chosen []string
		for _, m := range consolidation.Find(in).Moves {
			if d.roll(2) == 0 {
				chosen = append(chosen, m.Nodes...)
			}
		}
		out := consolidation.Revalidate(in, append(chosen, "missing"))
		checkResult(t, in, out)
		for _, m := range out.Moves {
			for _, name := range m.Nodes {
				if !slices.Contains(chosen, name) {
					t.Fatalf("%s is removed, but is not one of %v", name, chosen)
				}
			}
		}
	})
}

// TestReplaceBundled: each node can be replaced by a new node that costs a third less. The moves of earlier strategies
// are dropped, because their pods are unschedulable when all other nodes take pods too. The nodes to which these moves
// would have moved pods can still be replaced.
func TestReplaceBundled(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	node := func(cores int64, pods ...int64) nodeSpec {
		return nodeSpec{cores, catalog.OnDemand, catalog.Price(cores) * cent * 3 / 2, pods}
	}
	for name, nodes := range map[string][]nodeSpec{
		"three of one size": {node(4, 100, 300, 600, 400, 1500), node(4, 1000, 1500), node(4, 100, 800, 1300)},
		"three small nodes": {node(2, 800, 600, 200), node(2, 500, 500, 100, 400), node(2, 500, 400)},
		"one larger node":   {node(2, 300, 100, 700, 300), node(2, 600, 400, 200, 700), node(2, 200, 600), node(4, 1600, 100, 700, 1300)},
		"two larger nodes":  {node(2, 700, 500, 600), node(4, 800, 1200, 1400), node(4, 100, 300, 700, 500, 1000, 200)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fleetOf(marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 2, 4, 8), nodes...)
			in.MaxRemovals = map[string]int{"general": 1}
			out := consolidation.Find(in)
			checkResult(t, in, out)
			if len(out.Moves) == 0 {
				t.Fatal("no node is removed, want at least one")
			}
			again := consolidation.Revalidate(in, out.Moves[0].Nodes)
			checkResult(t, in, again)
			if again.Saving < out.Moves[0].Saving {
				t.Errorf("the revalidated move saves %s, want at least %s", again.Saving, out.Moves[0].Saving)
			}
		})
	}
}
