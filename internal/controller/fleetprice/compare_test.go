package fleetprice

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// fleet has two nodes of pool a, one of them leaving, a node of the static pool s, and the node other, which has
// no NodeClaim.
func fleet() cluster.Snapshot {
	capacity := resources.Amounts{CPU: 2000}
	pod := func(name string) cluster.Pod { return cluster.Pod{Namespace: "ns", Name: name} }
	moving, pending := pod("moving"), pod("pending")
	moving.Node = "a2"
	return cluster.Snapshot{
		Pools: []cluster.Pool{
			{Name: "a", Nodes: 2, Usage: resources.Amounts{CPU: 4000}},
			{Name: "s", Nodes: 1, Usage: capacity, Unusable: "static"},
		},
		Nodes: []cluster.Node{
			{Name: "a1", Claim: "claim-a1", Pool: "a", Capacity: capacity, Pods: []cluster.Pod{pod("web-1"), pod("web-2")}},
			{Name: "a2", Claim: "claim-a2", Pool: "a", Capacity: capacity, Leaving: true},
			{Name: "other", Pods: []cluster.Pod{pod("system")}},
			{Name: "s1", Claim: "claim-s1", Pool: "s", Capacity: capacity, Pods: []cluster.Pod{pod("db")}},
		},
		Pods: []cluster.Pod{moving, pending},
	}
}

// TestCompare: the plan gets the pods of the compared nodes, but not these nodes or their usage.
func TestCompare(t *testing.T) {
	t.Parallel()
	got, ok := Compare(fleet(), func(s cluster.Snapshot) packing.Plan {
		var nodes, pods []string
		for _, n := range s.Nodes {
			nodes = append(nodes, n.Name)
		}
		for _, p := range s.Pods {
			pods = append(pods, p.Name)
			if p.Node != "" {
				t.Errorf("pod %s is still on node %s", p.Name, p.Node)
			}
		}
		if !slices.Equal(nodes, []string{"other", "s1"}) || !slices.Equal(pods, []string{"moving", "web-1", "web-2"}) {
			t.Errorf("planned the pods %v beside the nodes %v, want moving, web-1 and web-2 beside other and s1", pods, nodes)
		}
		if a := s.Pools[0]; a.Nodes != 0 || a.Usage.CPU != 0 || s.Pools[1].Nodes != 1 {
			t.Errorf("pools %+v, want no nodes and no usage in a, and one node in s", s.Pools)
		}
		return packing.Plan{Price: 30, LowerBound: 20}
	})
	if !ok || got.Pods != 3 || got.Plan != 30 || got.Bound != 20 || !slices.Equal(got.Claims, []string{"claim-a1", "claim-a2"}) {
		t.Errorf("Compare returns %+v, %t; want 3 pods, price 30, bound 20 and both claims of pool a", got, ok)
	}
	if before := fleet(); before.Pools[0].Nodes != 2 {
		t.Error("Compare changed its input")
	}
}

// TestCompareLeavesOut: a node with a pod that cannot be planned again is not compared.
func TestCompareLeavesOut(t *testing.T) {
	t.Parallel()
	// refuse returns a solver that refuses the named pod, or the first pod if pod is empty.
	refuse := func(pod string) func(cluster.Snapshot) packing.Plan {
		return func(s cluster.Snapshot) packing.Plan {
			for _, p := range s.Pods {
				if p.Name == pod || pod == "" {
					return packing.Plan{Refusals: []packing.Refusal{{Pod: p.ID()}}}
				}
			}
			return packing.Plan{Price: 10, LowerBound: 10}
		}
	}
	got, ok := Compare(fleet(), refuse("web-2"))
	if !ok || got.Pods != 1 || !slices.Equal(got.Claims, []string{"claim-a2"}) {
		t.Errorf("Compare returns %+v, %t; want one pod, and only claim-a2", got, ok)
	}
	got, ok = Compare(fleet(), refuse(""))
	if !ok || got.Pods != 0 || len(got.Claims) != 0 {
		t.Errorf("every pod is refused: Compare returns %+v, %t; want no pods and no claims, true", got, ok)
	}
	many := fleet() // has more compared nodes than maxRounds, and each round leaves out one
	for _, name := range []string{"b1", "b2", "b3", "b4", "b5"} {
		many.Nodes = append(many.Nodes, cluster.Node{Name: name, Claim: name, Pool: "a", Pods: []cluster.Pod{{Namespace: name, Name: name}}})
	}
	if _, ok = Compare(many, refuse("")); ok {
		t.Error("Compare returns true although the plan of the last round refused a pod, want false")
	}
}
