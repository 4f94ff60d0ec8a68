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

// TestReplaceHoldsUp: for random fleets and nodes, each node is in one move, and verify accepts all moves together.
func TestReplaceHoldsUp(t *testing.T) {
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
		d := dice(rapid.Uint64().Draw(t, "who"))
		percent := rapid.IntRange(1, 100).Draw(t, "goes")
		var goes []string
		for _, n := range in.Snapshot.Nodes {
			if d.roll(100) < percent {
				goes = append(goes, n.Name)
			}
		}
		out := consolidation.Replace(in, goes)
		if diff := cmp.Diff(out, consolidation.Replace(in, goes)); diff != "" {
			t.Fatalf("the second result differs: %s", diff)
		}
		var went []string
		for _, m := range out.Moves {
			went = append(went, m.Nodes...)
			if len(goes) <= 16 && len(m.Nodes) > 1 {
				t.Fatalf("%v are one move", m.Nodes)
			}
			for _, p := range m.Placements {
				if slices.Contains(goes, p.Node) {
					t.Fatalf("%s is placed on %s, which is removed too", p.Pod, p.Node)
				}
			}
		}
		slices.Sort(went)
		if !slices.Equal(went, goes) || len(out.Stuck) > 0 {
			t.Fatalf("%v are removed, want %v; stuck: %+v", went, goes, out.Stuck)
		}
		s, plan := moved(in, out.Moves)
		if broken := verify.Check(s, in.Market, plan); len(broken) > 0 {
			t.Fatalf("all moves together: %v", broken)
		}
	})
}

// TestReplace: prices do not count, nodes that cannot be removed stay, and pending pods keep their places.
func TestReplace(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := shop(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	node := func(pods ...int64) row { return row{4, catalog.OnDemand, cent, pods} } // a quarter of the price of a new node
	for name, c := range map[string]struct {
		in     consolidation.Input
		change func(*consolidation.Input)
		goes   []string
		moves  []string
		stuck  map[string]packing.Code
		dearer catalog.Price
	}{
		"nobody": {in: rows(market, node(3900))},
		"equivalent but more expensive": {
			in: rows(market, node(3900), node(3900)), goes: []string{"n1"}, moves: []string{"n1: 1 bought, 0 placed"}, dearer: 3 * cent,
		},
		"onto a node that stays": {in: rows(market, node(1000), node(1000)), goes: []string{"n1"},
			moves: []string{"n1: 0 bought, 1 placed"}, dearer: -cent},
		"not onto another removed node": {
			in: rows(market, node(1000), node(1000)), goes: []string{"n0", "n1"},
			moves:  []string{"n0: 1 bought, 0 placed", "n1: 1 bought, 0 placed"},
			dearer: 6 * cent,
		},
		"room is used once": {
			in: rows(market, node(2000), node(1500), node(1500)), goes: []string{"n1", "n2"},
			moves: []string{"n1: 0 bought, 1 placed", "n2: 1 bought, 0 placed"}, dearer: 2 * cent,
		},
		"a pod without an offering": {
			in: rows(market, node(3900), node(2000, 1000), node(3900)), goes: []string{"n0", "n1", "n2"},
			change: func(in *consolidation.Input) { in.Snapshot.Nodes[1].Pods[0].Requests.CPU = 9000 },
			moves:  []string{"n0: 1 bought, 0 placed", "n2: 1 bought, 0 placed"},
			stuck:  map[string]packing.Code{"n1": packing.TooSmall}, dearer: 6 * cent,
		},
		"pending pods first": {
			in: rows(market, node(2000), node(1500)), goes: []string{"n1"},
			change: func(in *consolidation.Input) {
				in.Snapshot.Pods = []cluster.Pod{{Namespace: "x", Name: "waits", Requests: resources.Amounts{CPU: 1800, Memory: 1 << 20, Pods: 1}}}
			},
			moves: []string{"n1: 1 bought, 0 placed"}, dearer: 3 * cent,
		},
		"no candidate": {
			in: rows(market, node(3900)), goes: []string{"n0"}, change: func(in *consolidation.Input) { clear(in.Nodes) },
			moves: []string{"n0: 1 bought, 0 placed"}, dearer: 4 * cent,
		},
		"an empty node": {in: rows(market, node()), goes: []string{"n0"}, moves: []string{"n0: 0 bought, 0 placed"}, dearer: -cent},
		"ignored names": {
			in: rows(market, node(3900), node(3900), node(3900)), goes: []string{"n0", "n1", "n2", "nobody"},
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
			out := consolidation.Replace(c.in, c.goes)
			var moves []string
			for _, m := range out.Moves {
				moves = append(moves, fmt.Sprintf("%s: %d bought, %d placed", strings.Join(m.Nodes, " "), len(m.PlannedNodes), len(m.Placements)))
			}
			stuck := map[string]packing.Code{}
			for _, s := range out.Stuck {
				stuck[s.Node] = s.Refusal.Reasons[0].Code
			}
			if !slices.Equal(moves, c.moves) || !maps.Equal(stuck, c.stuck) || -out.Saving != c.dearer {
				t.Errorf("%v; stuck %v; costs %s more\nwant %v; stuck %v; costs %s more", moves, stuck, -out.Saving, c.moves, c.stuck, c.dearer)
			}
		})
	}
}

// TestReplaceMany: with many nodes, some are planned together, and planned nodes have unique names.
func TestReplaceMany(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	var all []row
	var goes []string
	for range 40 {
		all = append(all, row{4, catalog.OnDemand, 4 * cent, []int64{1800}})
	}
	in := rows(shop(map[string]catalog.Price{catalog.OnDemand: cent}, 4), all...)
	for _, n := range in.Snapshot.Nodes {
		goes = append(goes, n.Name)
	}
	out := consolidation.Replace(in, goes)
	names := map[string]bool{}
	nodes := 0
	for _, m := range out.Moves {
		nodes += len(m.Nodes)
		if len(m.Nodes) > 3 {
			t.Errorf("%d nodes are one move", len(m.Nodes))
		}
		for _, machine := range m.PlannedNodes {
			names[machine.Name] = true
		}
	}
	if nodes != 40 || len(names) >= 40 || out.Target != catalog.Price(len(names))*4*cent {
		t.Errorf("%d nodes are replaced with %d nodes at %s", nodes, len(names), out.Target)
	}
}
