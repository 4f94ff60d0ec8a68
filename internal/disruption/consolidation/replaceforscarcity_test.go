package consolidation_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// TestScarceCapacity: all offerings cost a third less than before, so every node will be replaced sooner or later. The
// free room is used for the pods of the nodes that save most. A move that saves less than the value of the room that it
// uses is not made.
func TestScarceCapacity(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	node := func(cores int64, pods ...int64) nodeSpec {
		return nodeSpec{cores, catalog.OnDemand, catalog.Price(cores) * cent * 3 / 2, pods}
	}
	full := slices.Repeat([]nodeSpec{node(8, 950, 950, 950, 950, 950, 950, 950, 950)}, 12) // n0 to n11
	with := func(more ...nodeSpec) []nodeSpec { return append(slices.Clone(full), more...) }
	for name, c := range map[string]struct {
		nodes  []nodeSpec
		change func(*consolidation.Input)
		want   []string // the nodes that the first pass removes
		cores  int64    // number of cores of the launched nodes
		waits  bool     // Result.Waits
	}{
		"all pods fit": {nodes: with(node(2, 390, 390, 390, 390), node(2, 390, 390)), want: []string{"n13", "n12"}},
		"some pods need a new node": {
			nodes: with(node(8, 290, 290, 290, 290, 290, 290, 290, 290, 2600, 2600)), want: []string{"n12"}, cores: 6,
			change: func(in *consolidation.Input) { in.Nodes["n12"] = consolidation.Candidate{Price: 12 * cent, Cost: 2} },
		},
		"room worth more than the saving": {
			nodes: with(nodeSpec{2, catalog.OnDemand, cent / 2, []int64{390, 390, 390, 390}}, node(2, 390, 390)), want: []string{"n13"},
			change: func(in *consolidation.Input) { in.Nodes["n12"] = consolidation.Candidate{Price: cent / 2, Cost: 0.1} },
		},
		"pods in transit need the room": {
			nodes: with(node(2, 390, 390, 390, 390), node(2, 390, 390)), waits: true,
			change: func(in *consolidation.Input) { terminate(in, 12) },
		},
		"pods of a stale node in transit": {
			nodes: with(node(2, 390, 390, 390, 390), node(2, 390, 390)), want: []string{"n13"},
			change: func(in *consolidation.Input) {
				terminate(in, 12)
				in.Stale = map[string]bool{"n12": true}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fleetOf(marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 1, 2, 4, 6, 8), c.nodes...)
			in.MaxRemovals = map[string]int{"general": 3}
			for i := range in.Snapshot.Nodes { // memory is as limited as CPU
				n := &in.Snapshot.Nodes[i]
				for k := range n.Pods {
					n.Pods[k].Requests.Memory = n.Pods[k].Requests.CPU << 22
				}
				recount(n)
			}
			if c.change != nil {
				c.change(&in)
			}
			out := consolidation.Find(in)
			if out.Waits != c.waits {
				t.Fatalf("Waits is %v, want %v", out.Waits, c.waits)
			}
			if c.waits {
				if len(out.Moves) > 0 {
					t.Fatalf("Waits is true, but %v are removed", out.Moves[0].Nodes)
				}
				return
			}
			if len(in.Snapshot.Pods) == 0 { // the plan of checkResult leaves out pending pods
				checkResult(t, in, out)
			}
			var removed []string
			var cores int64
			for _, m := range out.Moves {
				removed = append(removed, m.Nodes...)
				for k := range m.PlannedNodes {
					cores += int64(m.PlannedNodes[k].Price() / cent) // a core costs a cent
				}
			}
			if !slices.Equal(removed, c.want) || cores != c.cores {
				t.Fatalf("%v are removed, and nodes with %d cores are launched; want %v and %d", removed, cores, c.want, c.cores)
			}
			if again := consolidation.Revalidate(in, c.want); again.Saving != out.Saving {
				t.Errorf("the revalidated moves save %s, want %s", again.Saving, out.Saving)
			}
		})
	}
}

// terminate marks a node as terminating: its pods become pending, and it is no candidate.
func terminate(in *consolidation.Input, at int) {
	n := &in.Snapshot.Nodes[at]
	n.Leaving = true
	for _, p := range n.Pods {
		p.Node = n.Name
		in.Snapshot.Pods = append(in.Snapshot.Pods, p)
	}
	delete(in.Nodes, n.Name)
	slices.SortFunc(in.Snapshot.Pods, func(a, b cluster.Pod) int { return compare(a.ID(), b.ID()) })
}
