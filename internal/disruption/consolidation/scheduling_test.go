package consolidation_test

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestMovesAreSchedulable: a plan that kube-scheduler would not find results in no move.
func TestMovesAreSchedulable(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := shop(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	node := func(pods ...int64) row { return row{4, catalog.OnDemand, 4 * cent, pods} }
	large := func(in *consolidation.Input) *cluster.Pod { return &in.Snapshot.Nodes[0].Pods[0] }
	apart := cluster.Term{Key: "kubernetes.io/hostname", Namespaces: []string{"x"}}
	nobody := cluster.Term{Key: "kubernetes.io/hostname", Namespaces: []string{"x"}, Selector: cluster.Selector{Nothing: true}}
	for name, c := range map[string]struct {
		in      consolidation.Input
		change  func(*consolidation.Input)
		goes    bool // some node
		unbound []string
	}{
		"small pod takes the room of the large pod": {
			in: rows(market, node(1900, 1000), node(2000), node(2900)), unbound: []string{"x/p0-0"},
		},
		"room for both": {in: rows(market, node(1900, 1000), node(1000), node(2900)), goes: true},
		"pod with one possible node comes first": {
			in: rows(market, node(1900, 1000), node(2000), node(2900)), goes: true,
			change: func(in *consolidation.Input) {
				for i := range in.Snapshot.Nodes {
					in.Snapshot.Nodes[i].Labels["kubernetes.io/hostname"] = in.Snapshot.Nodes[i].Name
				}
				large(in).AntiAffinity = []cluster.Term{nobody}
				in.Nodes = map[string]consolidation.Candidate{"n0": in.Nodes["n0"]}
			},
		},
		"node that does not accept the pod": {
			in: rows(market, node(1900, 1000), node(100), node(2900)), unbound: []string{"x/p0-0"},
			change: func(in *consolidation.Input) {
				in.Snapshot.Nodes[1].Taints = []requirements.Taint{{Key: "a", Value: "b", Effect: requirements.NoSchedule}}
				in.Nodes = map[string]consolidation.Candidate{"n0": in.Nodes["n0"]}
			},
		},
		"node with anti-affinity": {
			in: rows(market, node(1900, 1000), node(100), node(2900)), unbound: []string{"x/p0-0"},
			change: func(in *consolidation.Input) {
				in.Snapshot.Nodes[1].Residents = []cluster.Resident{{Kind: &cluster.Kind{Namespace: "x", Avoids: []cluster.Term{apart}}, Count: 1}}
				in.Nodes = map[string]consolidation.Candidate{"n0": in.Nodes["n0"]}
			},
		},
		"reserved room": {
			in: rows(market, node(1900), node(1900), node(2900)), goes: true,
			change: func(in *consolidation.Input) { // n1 was launched for the pod of n0 and already counts the pod
				n := &in.Snapshot.Nodes[1]
				n.Pods = append(n.Pods, *large(in))
				n.Requested = n.Requested.Add(large(in).Requests)
				in.Nodes = map[string]consolidation.Candidate{"n2": in.Nodes["n2"]}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.change != nil {
				c.change(&c.in)
			}
			if name != "reserved room" {
				if out := consolidation.Find(c.in); len(out.Moves) > 0 != c.goes {
					t.Errorf("%d moves: %+v", len(out.Moves), out.Moves)
				}
			}
			s := c.in.Snapshot
			s.Nodes = slices.Clone(s.Nodes)
			plan := packing.Plan{Placements: []packing.Placement{{Pod: "x/p0-0", Node: "n1"}}}
			if got := consolidation.Unschedulable(s, plan, []string{"n0", "nobody"}, nil); !slices.Equal(got, c.unbound) {
				t.Errorf("%v have no node, want %v", got, c.unbound)
			}
		})
	}
}

// TestLargePodsComeFirst: with many pods, large ones are scheduled before small ones fill all nodes evenly, unless they
// are replaced late.
func TestLargePodsComeFirst(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := shop(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	node := func(pods ...int64) row { return row{4, catalog.OnDemand, 4 * cent, pods} }
	for owner, want := range map[string][]string{"ReplicaSet/a": nil, "StatefulSet/a": {"x/p0-0"}} {
		in := rows(market, node(1900, 100, 100, 100, 100, 100, 100, 100, 100, 100), node(2000), node(2900))
		in.Snapshot.Nodes[0].Pods[0].Owner = owner
		if got := consolidation.Unschedulable(in.Snapshot, packing.Plan{}, []string{"n0"}, nil); !slices.Equal(got, want) {
			t.Errorf("%v have no node with a pod of %s, want %v", got, owner, want)
		}
	}
}
