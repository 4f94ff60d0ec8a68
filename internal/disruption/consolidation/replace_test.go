package consolidation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// TestReplaceOnRandomFleets: for random nodes of random fleets, each node is in one move, and verify accepts all moves
// together.
func TestReplaceOnRandomFleets(t *testing.T) {
	t.Parallel()
	market := realMarket(t, 2, 16)
	small := market["default"]
	small.Types = slices.DeleteFunc(small.Types, func(t catalog.Type) bool {
		family, _, _ := strings.Cut(t.Name, ".")
		return !slices.Contains([]string{"m5", "c6i", "r6i", "t4g"}, family)
	})
	market["default"] = small
	rapid.Check(t, func(t *rapid.T) {
		in := drawFleet(t, market)
		d := dice(rapid.Uint64().Draw(t, "seed of the nodes"))
		percent := rapid.IntRange(1, 100).Draw(t, "percent of the nodes")
		var nodes []string
		for _, n := range in.Snapshot.Nodes {
			if d.roll(100) < percent {
				nodes = append(nodes, n.Name)
			}
		}
		out := consolidation.Replace(in, nodes)
		if diff := cmp.Diff(out, consolidation.Replace(in, nodes)); diff != "" {
			t.Fatalf("a second call of Replace returns another result: %s", diff)
		}
		var removed []string
		for _, m := range out.Moves {
			removed = append(removed, m.Nodes...)
			if len(nodes) <= 16 && len(m.Nodes) > 1 { // 16 is maxReplaceGroups
				t.Fatalf("%v are one move, want one move for each node", m.Nodes)
			}
			for _, p := range m.Placements {
				if slices.Contains(nodes, p.Node) {
					t.Fatalf("%s is placed on %s, which is removed too", p.Pod, p.Node)
				}
			}
		}
		slices.Sort(removed)
		if !slices.Equal(removed, nodes) || len(out.Stuck) > 0 {
			t.Fatalf("%v are removed, want %v; stuck: %+v", removed, nodes, out.Stuck)
		}
		s, plan := withMoves(in, out.Moves)
		if broken := verify.Check(s, in.Market, plan); len(broken) > 0 {
			t.Fatalf("all moves together break rules: %v", broken)
		}
	})
}

// TestReplace: nodes are removed even if that costs more, nodes that cannot be removed stay, and pending pods keep
// their planned places.
func TestReplace(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	node := func(pods ...int64) nodeSpec { return nodeSpec{4, catalog.OnDemand, cent, pods} } // a quarter of the price of a new node
	for name, c := range map[string]struct {
		in     consolidation.Input
		change func(*consolidation.Input)
		nodes  []string
		moves  []string
		stuck  map[string]packing.Code
		extra  catalog.Price // additional cost: the negative saving
	}{
		"no nodes": {in: fleetOf(market, node(3900))},
		"equivalent but more expensive": {
			in: fleetOf(market, node(3900), node(3900)), nodes: []string{"n1"}, moves: []string{"n1: 1 launched, 0 placed"}, extra: 3 * cent,
		},
		"onto a node that stays": {in: fleetOf(market, node(1000), node(1000)), nodes: []string{"n1"},
			moves: []string{"n1: 0 launched, 1 placed"}, extra: -cent},
		"not onto another removed node": {
			in: fleetOf(market, node(1000), node(1000)), nodes: []string{"n0", "n1"},
			moves: []string{"n0: 1 launched, 0 placed", "n1: 1 launched, 0 placed"},
			extra: 6 * cent,
		},
		"room for the pod of one of two nodes": {
			in: fleetOf(market, node(2000), node(1500), node(1500)), nodes: []string{"n1", "n2"},
			moves: []string{"n1: 0 launched, 1 placed", "n2: 1 launched, 0 placed"}, extra: 2 * cent,
		},
		"a pod without an offering": {
			in: fleetOf(market, node(3900), node(2000, 1000), node(3900)), nodes: []string{"n0", "n1", "n2"},
			change: func(in *consolidation.Input) { in.Snapshot.Nodes[1].Pods[0].Requests.CPU = 9000 },
			moves:  []string{"n0: 1 launched, 0 placed", "n2: 1 launched, 0 placed"},
			stuck:  map[string]packing.Code{"n1": packing.TooSmall}, extra: 6 * cent,
		},
		"pending pods are placed first": {
			in: fleetOf(market, node(2000), node(1500)), nodes: []string{"n1"},
			change: func(in *consolidation.Input) {
				in.Snapshot.Pods = []cluster.Pod{{Namespace: "x", Name: "pending", Requests: resources.Amounts{CPU: 1800, Memory: 1 << 20, Pods: 1}}}
			},
			moves: []string{"n1: 1 launched, 0 placed"}, extra: 3 * cent,
		},
		"nodes that are not in Input.Nodes": {
			in: fleetOf(market, node(3900)), nodes: []string{"n0"}, change: func(in *consolidation.Input) { clear(in.Nodes) },
			moves: []string{"n0: 1 launched, 0 placed"}, extra: 4 * cent,
		},
		"an empty node": {in: fleetOf(market, node()), nodes: []string{"n0"}, moves: []string{"n0: 0 launched, 0 placed"}, extra: -cent},
		"ignored names": {
			in: fleetOf(market, node(3900), node(3900), node(3900)), nodes: []string{"n0", "n1", "n2", "missing"},
			change: func(in *consolidation.Input) {
				in.Snapshot.Nodes[0].Leaving, in.Snapshot.Nodes[1].Initialized, in.Snapshot.Nodes[2].Claim = true, false, ""
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.change != nil {
				c.change(&c.in)
			}
			out := consolidation.Replace(c.in, c.nodes)
			var moves []string
			for _, m := range out.Moves {
				moves = append(moves, fmt.Sprintf("%s: %d launched, %d placed", strings.Join(m.Nodes, " "), len(m.PlannedNodes), len(m.Placements)))
			}
			stuck := map[string]packing.Code{}
			for _, s := range out.Stuck {
				stuck[s.Node] = s.Refusal.Reasons[0].Code
			}
			if !slices.Equal(moves, c.moves) || !maps.Equal(stuck, c.stuck) || -out.Saving != c.extra {
				t.Errorf("moves %v; stuck %v; cost %s more\nwant %v; stuck %v; cost %s more", moves, stuck, -out.Saving, c.moves, c.stuck, c.extra)
			}
		})
	}
}

// TestReplaceMany: of many nodes, some share a move, and planned nodes have unique names.
func TestReplaceMany(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	var all []nodeSpec
	var nodes []string
	const count = 40
	for range count {
		all = append(all, nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{1800}})
	}
	in := fleetOf(marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4), all...)
	for _, n := range in.Snapshot.Nodes {
		nodes = append(nodes, n.Name)
	}
	out := consolidation.Replace(in, nodes)
	names := map[string]bool{} // of planned nodes
	removed := 0
	for _, m := range out.Moves {
		removed += len(m.Nodes)
		if len(m.Nodes) > 3 { // count / maxReplaceGroups, rounded up
			t.Errorf("one move has %d nodes, want at most 3", len(m.Nodes))
		}
		for _, planned := range m.PlannedNodes {
			names[planned.Name] = true
		}
	}
	if removed != count || len(names) >= count || out.Target != catalog.Price(len(names))*4*cent {
		t.Errorf("%d nodes are replaced with %d nodes that cost %s; want 40, and fewer than 40 that cost %s each", removed, len(names),
			out.Target, 4*cent)
	}
}
