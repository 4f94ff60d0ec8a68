package consolidation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestMovesAreSchedulable: Find makes no move for a plan in which kube-scheduler would leave a pod without a node.
// Unschedulable returns that pod.
func TestMovesAreSchedulable(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	node := func(pods ...int64) nodeSpec { return nodeSpec{4, catalog.OnDemand, 4 * cent, pods} }
	large := func(in *consolidation.Input) *cluster.Pod { return &in.Snapshot.Nodes[0].Pods[0] }
	apart := cluster.Term{Key: "kubernetes.io/hostname", Namespaces: []string{"x"}}
	noPod := cluster.Term{Key: "kubernetes.io/hostname", Namespaces: []string{"x"}, Selector: cluster.Selector{MatchesNothing: true}}
	for name, c := range map[string]struct {
		in        consolidation.Input
		change    func(*consolidation.Input)
		removes   bool     // Find removes a node; not checked with reserved room
		unplanned bool     // the plan leaves out the first pod of n0
		unbound   []string // result of Unschedulable for n0
	}{
		"small pod takes the room of the large pod": {
			in: fleetOf(market, node(1900, 1000), node(2000), node(2900)), unbound: []string{"x/p0-0"},
		},
		"room for both": {in: fleetOf(market, node(1900, 1000), node(1000), node(2900)), removes: true},
		"constrained pod arrives first": {
			in: fleetOf(market, node(1900, 1000), node(2000), node(2900)), removes: true,
			change: func(in *consolidation.Input) {
				for i := range in.Snapshot.Nodes {
					in.Snapshot.Nodes[i].Labels["kubernetes.io/hostname"] = in.Snapshot.Nodes[i].Name
				}
				large(in).AntiAffinity = []cluster.Term{noPod}
				in.Nodes = map[string]consolidation.Candidate{"n0": in.Nodes["n0"]}
			},
		},
		"node that does not accept the pod": {
			in: fleetOf(market, node(1900, 1000), node(100), node(2900)), unbound: []string{"x/p0-0"},
			change: func(in *consolidation.Input) {
				in.Snapshot.Nodes[1].Taints = []requirements.Taint{{Key: "a", Value: "b", Effect: requirements.NoSchedule}}
				in.Nodes = map[string]consolidation.Candidate{"n0": in.Nodes["n0"]}
			},
		},
		"node with anti-affinity": {
			in: fleetOf(market, node(1900, 1000), node(100), node(2900)), unbound: []string{"x/p0-0"},
			change: func(in *consolidation.Input) {
				in.Snapshot.Nodes[1].Residents = []cluster.Resident{{PodKind: &cluster.PodKind{Namespace: "x", RequiredAntiAffinity: []cluster.Term{apart}}, Count: 1}}
				in.Nodes = map[string]consolidation.Candidate{"n0": in.Nodes["n0"]}
			},
		},
		"reserved room": {
			in: fleetOf(market, node(1900), node(1900), node(2900)), removes: true,
			change: func(in *consolidation.Input) { // n1 was launched for the pod of n0, and the requests of n1 include the pod
				n := &in.Snapshot.Nodes[1]
				n.Pods = append(n.Pods, *large(in))
				n.Requested = n.Requested.Add(large(in).Requests)
				in.Nodes = map[string]consolidation.Candidate{"n2": in.Nodes["n2"]}
			},
		},
		"constrained pod with reserved room": { // the plan leaves the pod out, because it has a node
			in: fleetOf(market, node(1900), node(1900), node(2900)), removes: true, unplanned: true,
			change: func(in *consolidation.Input) {
				large(in).AntiAffinity = []cluster.Term{noPod}
				n := &in.Snapshot.Nodes[1]
				n.Pods = append(n.Pods, *large(in))
				n.Requested = n.Requested.Add(large(in).Requests)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.change != nil {
				c.change(&c.in)
			}
			if !strings.HasSuffix(name, "reserved room") { // only Unschedulable knows reserved room
				if out := consolidation.Find(c.in); len(out.Moves) > 0 != c.removes {
					t.Errorf("moves %+v, want a move: %v", out.Moves, c.removes)
				}
			}
			s := c.in.Snapshot
			s.Nodes = slices.Clone(s.Nodes)
			var plan packing.Plan
			if !c.unplanned {
				plan.Placements = []packing.Placement{{Pod: "x/p0-0", Node: "n1"}}
			}
			if got := consolidation.Unschedulable(s, plan, []string{"n0", "missing"}, nil); !slices.Equal(got, c.unbound) {
				t.Errorf("%v have no node, want %v", got, c.unbound)
			}
		})
	}
}

// TestLargePodsComeFirst: with more than maxUnorderedPods pods, large pods are scheduled before small pods fill all
// nodes evenly. Pods of StatefulSets arrive last, because they are replaced late.
func TestLargePodsComeFirst(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	node := func(pods ...int64) nodeSpec { return nodeSpec{4, catalog.OnDemand, 4 * cent, pods} }
	for owner, want := range map[string][]string{"ReplicaSet/a": nil, "StatefulSet/a": {"x/p0-0"}} {
		in := fleetOf(market, node(1900, 100, 100, 100, 100, 100, 100, 100, 100, 100), node(2000), node(2900))
		in.Snapshot.Nodes[0].Pods[0].Owner = owner
		if got := consolidation.Unschedulable(in.Snapshot, packing.Plan{}, []string{"n0"}, nil); !slices.Equal(got, want) {
			t.Errorf("large pod of %s: %v have no node, want %v", owner, got, want)
		}
	}
}

// TestSpreadHasMoreWeightThanRoom: kube-scheduler puts a pod of a ReplicaSet on a node without pods of its kind, although
// another node has more free room. Then that node keeps the room for the large pod.
func TestSpreadHasMoreWeightThanRoom(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	node := func(pods ...int64) nodeSpec { return nodeSpec{4, catalog.OnDemand, 4 * cent, pods} }
	for owner, want := range map[string][]string{"ReplicaSet/a": nil, "": {"x/p0-1"}} {
		in := fleetOf(market, node(500, 1000), node(100, 2900), node(3400))
		for i := range in.Snapshot.Nodes {
			n := &in.Snapshot.Nodes[i]
			for k := range n.Pods {
				n.Pods[k].Labels = requirements.Labels{"app": fmt.Sprint("other-", i)}
			}
			if i < 2 {
				n.Pods[0].Owner, n.Pods[0].Labels = owner, requirements.Labels{"app": "a"}
			}
			recount(n)
		}
		if got := consolidation.Unschedulable(in.Snapshot, packing.Plan{}, []string{"n0"}, nil); !slices.Equal(got, want) {
			t.Errorf("pods of %q: %v have no node, want %v", owner, got, want)
		}
	}
}

// TestRoomOfOtherMoves: n2 was launched for a pod of another move, which is still on n9. kube-scheduler would put the pod
// of n0 on n2, which has most free room. That is allowed only if n2 has room for both.
func TestRoomOfOtherMoves(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	node := func(pods ...int64) nodeSpec { return nodeSpec{4, catalog.OnDemand, 4 * cent, pods} }
	for expected, want := range map[int64][]string{3000: nil, 3200: {"x/p0-0"}} {
		in := fleetOf(market, node(1000), node(2500), node(expected))
		n := &in.Snapshot.Nodes[2]
		n.Pods[0].Node = "n9"
		if got := consolidation.Unschedulable(in.Snapshot, packing.Plan{}, []string{"n0"}, nil); !slices.Equal(got, want) {
			t.Errorf("with an expected pod of %d millicores: %v have no node, want %v", expected, got, want)
		}
	}
}
