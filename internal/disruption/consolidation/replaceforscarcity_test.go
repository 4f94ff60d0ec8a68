package consolidation_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// TestScarceCapacity: all offerings cost a third less than before, so every node will be replaced. The free room goes
// to the pods of the nodes that save most, and not below its value.
func TestScarceCapacity(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	node := func(cores int64, pods ...int64) row {
		return row{cores, catalog.OnDemand, catalog.Price(cores) * cent * 3 / 2, pods}
	}
	full := slices.Repeat([]row{node(8, 950, 950, 950, 950, 950, 950, 950, 950)}, 12)
	with := func(more ...row) []row { return append(slices.Clone(full), more...) }
	for name, c := range map[string]struct {
		nodes  []row
		change func(*consolidation.Input)
		goes   []string // nodes removed in the first pass, and no others
		buys   int64    // launched cores
		waits  bool
	}{
		"all pods fit": {nodes: with(node(2, 390, 390, 390, 390), node(2, 390, 390)), goes: []string{"n13", "n12"}},
		"some pods need a new node": {
			nodes: with(node(8, 290, 290, 290, 290, 290, 290, 290, 290, 2600, 2600)), goes: []string{"n12"}, buys: 6,
			change: func(in *consolidation.Input) { in.Nodes["n12"] = consolidation.Candidate{Price: 12 * cent, Cost: 2} },
		},
		"room worth more than the saving": {
			nodes: with(row{2, catalog.OnDemand, cent / 2, []int64{390, 390, 390, 390}}, node(2, 390, 390)), goes: []string{"n13"},
			change: func(in *consolidation.Input) { in.Nodes["n12"] = consolidation.Candidate{Price: cent / 2, Cost: 0.1} },
		},
		"pods in transit to the room": {
			nodes: with(node(2, 390, 390, 390, 390), node(2, 390, 390)), waits: true,
			change: func(in *consolidation.Input) { leave(in, 12) },
		},
		"stale pods in transit": {
			nodes: with(node(2, 390, 390, 390, 390), node(2, 390, 390)), goes: []string{"n13"},
			change: func(in *consolidation.Input) {
				leave(in, 12)
				in.Stale = map[string]bool{"n12": true}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := rows(shop(map[string]catalog.Price{catalog.OnDemand: cent}, 1, 2, 4, 6, 8), c.nodes...)
			in.MaxRemovals = map[string]int{"general": 3}
			for i := range in.Snapshot.Nodes { // memory is as limited as CPU
				n := &in.Snapshot.Nodes[i]
				for k := range n.Pods {
					n.Pods[k].Requests.Memory = n.Pods[k].Requests.CPU << 22
				}
				settle(n)
			}
			if c.change != nil {
				c.change(&in)
			}
			out := consolidation.Find(in)
			if out.Waits != c.waits {
				t.Fatalf("waits: %v, want %v", out.Waits, c.waits)
			}
			if c.waits {
				if len(out.Moves) > 0 {
					t.Fatalf("%v are removed nevertheless", out.Moves[0].Nodes)
				}
				return
			}
			if len(in.Snapshot.Pods) == 0 {
				judge(t, in, out)
			}
			var goes []string
			var cores int64
			for _, m := range out.Moves {
				goes = append(goes, m.Nodes...)
				for k := range m.PlannedNodes {
					cores += int64(m.PlannedNodes[k].Price() / cent)
				}
			}
			if !slices.Equal(goes, c.goes) || cores != c.buys {
				t.Fatalf("%v are removed, and %d cores are launched; want %v and %d", goes, cores, c.goes, c.buys)
			}
			if again := consolidation.Revalidate(in, c.goes); again.Saving != out.Saving {
				t.Errorf("revalidated, it saves %s, before %s", again.Saving, out.Saving)
			}
		})
	}
}

// leave marks the node as terminating: its pods need places elsewhere.
func leave(in *consolidation.Input, at int) {
	n := &in.Snapshot.Nodes[at]
	n.Leaving = true
	for _, p := range n.Pods {
		p.Node = n.Name
		in.Snapshot.Pods = append(in.Snapshot.Pods, p)
	}
	delete(in.Nodes, n.Name)
	slices.SortFunc(in.Snapshot.Pods, func(a, b cluster.Pod) int { return compare(a.ID(), b.ID()) })
}
