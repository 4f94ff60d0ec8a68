package packing_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestResidentsCost checks that a hundred times as many existing pods of the same kinds cause no more allocations.
func TestResidentsCost(t *testing.T) {
	market := bigMarket(catalog.OnDemand)
	allocations := func(podsPerNode int) float64 {
		s := crowded(200, podsPerNode)
		if plan := packing.Solve(s, market, packing.DefaultEffort); len(plan.Refusals) > 0 || len(plan.Placements) == 0 {
			t.Fatalf("%d placements, refused %v; want some placements and no refusal", len(plan.Placements), plan.Refusals)
		}
		return testing.AllocsPerRun(1, func() { packing.Solve(s, market, packing.DefaultEffort) })
	}
	if few, many := allocations(1), allocations(100); many > few {
		t.Errorf("a plan allocates %.0f objects with 200 residents, and %.0f with 20,000 of the same 20 kinds, want no more", few, many)
	}
}

// TestFullNodesCost checks that nodes without room for a class cost no steps, even if they have room for another class.
func TestFullNodesCost(t *testing.T) {
	t.Parallel()
	market := bigMarket(catalog.OnDemand)
	steps := func(nodes int) int {
		s := crowded(nodes, 1)
		for i := range s.Nodes[1:] {
			s.Nodes[1+i].Allocatable.CPU = 20
		}
		small, large := s.Pods[2], s.Pods[2] // no rules
		small.Name, small.Requests.CPU = "small", 10
		large.Name, large.Requests.CPU = "large", 20_000
		s.Pods = append(s.Pods, small, large)
		plan := packing.Solve(s, market, packing.DefaultEffort)
		if len(plan.Placements) != len(s.Pods)-1 || len(plan.PlannedNodes) != 1 {
			t.Fatalf("%d pods have %d placements and %d new nodes, want one new node for the large pod", len(s.Pods), len(plan.Placements), len(plan.PlannedNodes))
		}
		return plan.Steps
	}
	if few, many := steps(2), steps(2000); many > few {
		t.Errorf("a plan takes %d steps beside one node without room, and %d beside 1,999, want no more", few, many)
	}
}

// TestHostAffinityCost checks that pods with required host affinity cost no steps for the hosts without matching pods.
func TestHostAffinityCost(t *testing.T) {
	t.Parallel()
	market := bigMarket(catalog.OnDemand)
	steps := func(nodes int) int {
		s := crowded(nodes, 0)
		kind := &cluster.PodKind{Namespace: "default", Labels: requirements.Labels{"app": "db"}}
		s.Nodes[0].Residents = []cluster.Resident{{PodKind: kind, Count: 1}}
		s.Nodes[0].Allocatable.CPU = 150
		selector := cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf("db")}}
		s.Pods = s.Pods[2:3] // no rules
		s.Pods[0].Affinity = []cluster.Term{{Key: "kubernetes.io/hostname", Namespaces: []string{"default"}, Selector: selector}}
		more := s.Pods[0]
		more.Name = "more"
		s.Pods = append(s.Pods, more)
		plan := packing.Solve(s, market, packing.DefaultEffort)
		if len(plan.Placements) != 1 || len(plan.Refusals) != 1 {
			t.Fatalf("%d pods are placed and %d refused, want one each: there is room for one beside db", len(plan.Placements), len(plan.Refusals))
		}
		return plan.Steps
	}
	if few, many := steps(2), steps(2000); many > few {
		t.Errorf("a plan takes %d steps beside one empty node, and %d beside 1,999, want no more", few, many)
	}
}

// crowded returns nodes with podsPerNode existing pods each, and one pending pod of each of the 20 kinds of these pods.
// Some kinds have anti-affinity, some have spreads.
func crowded(nodes, podsPerNode int) cluster.Snapshot {
	kinds := make([]*cluster.PodKind, 20)
	s := cluster.Snapshot{Pools: anyPool}
	for k := range kinds {
		app := fmt.Sprint("app-", k)
		p := cluster.Pod{
			Namespace: "default", Name: app, Labels: requirements.Labels{"app": app},
			Requests: resources.Amounts{CPU: 100, Memory: 1 << 28, Pods: 1},
		}
		selector := cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf(app)}}
		switch k % 3 {
		case 0:
			p.Spread = []cluster.Spread{{Key: catalog.LabelZone, MaxSkew: 10_000, Selector: selector}}
		case 1:
			p.AntiAffinity = []cluster.Term{{Key: "rack", Namespaces: []string{"default"}, Selector: selector}}
		}
		kinds[k] = &cluster.PodKind{Namespace: "default", Labels: p.Labels, RequiredAntiAffinity: p.AntiAffinity}
		s.Pods = append(s.Pods, p)
	}
	for i := range nodes {
		n := cluster.Node{
			Name: fmt.Sprintf("node-%03d", i), Joined: true, Initialized: true,
			Labels:      requirements.Labels{catalog.LabelZone: fmt.Sprint("us-east-1", string(rune('a'+i%3)))},
			Allocatable: resources.Amounts{CPU: 16_000, Memory: 64 << 30, Pods: 200},
		}
		for k := range podsPerNode {
			n.Residents = append(n.Residents, cluster.Resident{PodKind: kinds[(i+k)%len(kinds)], Count: 1})
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}
