package consolidation_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// marketOf returns a market in one zone: an instance type for each number of cores. prices has the price per core for
// each capacity type.
func marketOf(prices map[string]catalog.Price, cores ...int64) catalog.Market {
	var types []catalog.Type
	for _, n := range cores {
		name := fmt.Sprintf("any-%02d", n)
		full := resources.Amounts{CPU: 1000 * n, Memory: 4 * n << 30, Pods: 30}
		typ := catalog.Type{Name: name, Capacity: full, Allocatable: full,
			Labels: requirements.Labels{catalog.LabelInstanceType: name, catalog.LabelArch: "amd64", catalog.LabelOS: "linux"}}
		for capacityType, price := range prices {
			o := catalog.Offering{Zone: "a", CapacityType: capacityType, Price: price * catalog.Price(n), Available: true}
			if capacityType == catalog.Reserved {
				o.Reservation = catalog.Reservation{ID: "cr-" + name, Type: catalog.ReservationDefault, Left: 1}
			}
			typ.Offerings = append(typ.Offerings, o)
		}
		types = append(types, typ.WithOfferings(typ.Offerings))
	}
	return catalog.Market{"default": {Types: types}}
}

type nodeSpec struct {
	cores        int64 // of the instance type
	capacityType string
	price        catalog.Price // of the node per hour
	pods         []int64       // requests of each pod, in millicores
}

// fleetOf returns a fleet of nodes n0, n1 and so on. The pods of n0 are p0-0, p0-1 and so on.
func fleetOf(market catalog.Market, all ...nodeSpec) consolidation.Input {
	in := consolidation.Input{Market: market, Nodes: map[string]consolidation.Candidate{},
		Snapshot: cluster.Snapshot{Pools: []cluster.Pool{{Name: "general", NodeClass: "default"}}}}
	for i, r := range all {
		full := resources.Amounts{CPU: 1000 * r.cores, Memory: 4 * r.cores << 30, Pods: 30}
		n := cluster.Node{Name: fmt.Sprint("n", i), Claim: fmt.Sprint("n", i), Pool: "general", NodeClass: "default",
			Joined: true, Initialized: true,
			Capacity: full, Allocatable: full,
			Labels: requirements.Labels{catalog.LabelCapacityType: r.capacityType, catalog.LabelZone: "a",
				catalog.LabelInstanceType: fmt.Sprintf("any-%02d", r.cores)}}
		for k, ask := range r.pods {
			n.Pods = append(n.Pods, cluster.Pod{Namespace: "x", Name: fmt.Sprintf("p%d-%d", i, k),
				Requests: resources.Amounts{CPU: ask, Memory: 1 << 20, Pods: 1}})
		}
		recount(&n)
		in.Snapshot.Nodes = append(in.Snapshot.Nodes, n)
		in.Nodes[n.Name] = consolidation.Candidate{Price: r.price, Cost: float64(len(r.pods))}
	}
	return in
}

// TestRules checks which moves are allowed, and which saving they need.
func TestRules(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	onDemand := map[string]catalog.Price{catalog.OnDemand: cent}
	both := map[string]catalog.Price{catalog.OnDemand: cent, catalog.Spot: cent / 2}
	reserved := map[string]catalog.Price{catalog.OnDemand: cent, catalog.Reserved: 0}
	full := nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{3900}}
	var manySizes []int64 // 1 to 30 cores
	for n := range int64(30) {
		manySizes = append(manySizes, n+1)
	}
	halves := []nodeSpec{{4, catalog.OnDemand, 4 * cent, []int64{1500}}, {4, catalog.OnDemand, 4 * cent, []int64{1500}}}
	for name, c := range map[string]struct {
		in       consolidation.Input
		change   func(*consolidation.Input)
		removed  []string
		launches int // number of launched nodes
		saving   catalog.Price
	}{
		"two half-empty nodes": {in: fleetOf(marketOf(onDemand, 4), halves...), removed: []string{"n0"}, saving: 4 * cent},
		"empty node": {in: fleetOf(marketOf(onDemand, 4),
			nodeSpec{4, catalog.OnDemand, 4 * cent, nil}), removed: []string{"n0"}, saving: 4 * cent},
		"full node": {in: fleetOf(marketOf(onDemand, 4), nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{3900}})},
		"oversized node": {in: fleetOf(marketOf(onDemand, 2, 4),
			nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{1500}}), removed: []string{"n0"}, launches: 1, saving: 2 * cent},
		// n0 would be replaced with an equivalent node. It stays and takes the pod of n1.
		"equivalent replacement": {in: fleetOf(marketOf(onDemand, 2, 8),
			nodeSpec{8, catalog.OnDemand, 8 * cent, []int64{5000}}, nodeSpec{2, catalog.OnDemand, 2 * cent, []int64{1500}}),
			removed: []string{"n1"}, saving: 2 * cent},
		"equivalent replacement with a label that n0 lacks": {in: fleetOf(marketOf(onDemand, 2, 8),
			nodeSpec{8, catalog.OnDemand, 8 * cent, []int64{5000}}, nodeSpec{2, catalog.OnDemand, 2 * cent, []int64{1500}}),
			change: requireNewLabel, removed: []string{"n0", "n1"}, launches: 1, saving: 2 * cent},
		"cheaper equivalent": {in: fleetOf(marketOf(onDemand, 2, 8),
			nodeSpec{8, catalog.OnDemand, 9 * cent, []int64{5000}}, nodeSpec{2, catalog.OnDemand, 2 * cent, []int64{1500}}),
			removed: []string{"n0", "n1"}, launches: 1, saving: 3 * cent},
		"no candidate": {in: fleetOf(marketOf(onDemand, 4), halves...),
			change: func(in *consolidation.Input) { clear(in.Nodes) }},
		"saving below the pool's minimum": {in: fleetOf(marketOf(onDemand, 4), halves...),
			change: withRule(consolidation.Rule{MinSaving: 5 * cent})},
		"saving at the pool's minimum": {in: fleetOf(marketOf(onDemand, 4), halves...),
			change: withRule(consolidation.Rule{MinSaving: 4 * cent}), removed: []string{"n0"}, saving: 4 * cent},
		"share below the pool's minimum": {in: fleetOf(marketOf(onDemand, 2, 4),
			nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{1500}}), change: withRule(consolidation.Rule{MinSavingShare: 0.6})}, // saves 0.5
		"worth below the pool's minimum": {in: fleetOf(marketOf(onDemand, 3, 4),
			nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{1500}}), change: withRule(consolidation.Rule{LeastWorth: 0.5})}, // worth 0.25
		"on-demand to one reservation": {in: fleetOf(marketOf(reserved, 4), full, full), removed: []string{"n0"},
			launches: 1, saving: 4 * cent},
		"reserved node": {in: fleetOf(marketOf(reserved, 2, 4), nodeSpec{4, catalog.Reserved, 0, []int64{1500}})},
		"on-demand to spot": {in: fleetOf(marketOf(both, 4),
			nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{3900}}), removed: []string{"n0"}, launches: 1, saving: 2 * cent},
		"spot to cheaper spot": {in: fleetOf(marketOf(both, manySizes...), nodeSpec{30, catalog.Spot, 15 * cent, []int64{900}})},
		"spot to spot allowed": {in: fleetOf(marketOf(both, manySizes...),
			nodeSpec{30, catalog.Spot, 15 * cent, []int64{900}}), change: allowSpotToSpot,
			removed: []string{"n0"}, launches: 1, saving: 15*cent - cent/2},
		"too few spot types": {in: fleetOf(marketOf(both, 1, 30),
			nodeSpec{30, catalog.Spot, 15 * cent, []int64{900}}), change: allowSpotToSpot},
		"spot onto existing nodes": {in: fleetOf(marketOf(both, 4),
			nodeSpec{4, catalog.Spot, 2 * cent, []int64{900}}, nodeSpec{4, catalog.Spot, 2 * cent, []int64{900}}), removed: []string{"n0"}, saving: 2 * cent},
		"unknown price": {in: fleetOf(marketOf(onDemand, 2, 4), nodeSpec{4, catalog.OnDemand, 0, []int64{1500}})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.change != nil {
				c.change(&c.in)
			}
			out := consolidation.Find(c.in)
			var removed []string
			var launched []packing.PlannedNode
			for _, m := range out.Moves {
				removed, launched = append(removed, m.Nodes...), append(launched, m.PlannedNodes...)
				const together = time.Hour     // how long old and new nodes run together
				newPrice := m.Price - m.Saving // the price of the planned nodes
				if got, want := m.PaybackTime(together).Hours(), float64(newPrice)/float64(m.Saving); math.Abs(got-want) > 1e-6 {
					t.Errorf("the payback time is %v hours, want %v", got, want)
				}
			}
			if !slices.Equal(removed, c.removed) || len(launched) != c.launches || out.Saving != c.saving {
				t.Errorf("%v are replaced with %d nodes, which saves %s; want %v, %d, %s",
					removed, len(launched), out.Saving, c.removed, c.launches, c.saving)
			}
			for _, m := range launched {
				types := map[string]bool{}
				for _, o := range m.Offerings {
					types[o.InstanceType] = true
				}
				if c.in.SpotToSpot && len(types) != 15 { // minSpotTypes
					t.Errorf("%d types may replace a spot instance, want 15", len(types))
				}
			}
		})
	}
}

func withRule(r consolidation.Rule) func(*consolidation.Input) {
	return func(in *consolidation.Input) { in.Rules = map[string]consolidation.Rule{"general": r} }
}

// requireNewLabel gives the pool a label that its nodes lack and the pods of n1 require.
func requireNewLabel(in *consolidation.Input) {
	in.Snapshot.Pools[0].Labels = requirements.Labels{"tier": "new"}
	for i := range in.Snapshot.Nodes[1].Pods {
		in.Snapshot.Nodes[1].Pods[i].Required = []requirements.Requirements{{"tier": requirements.OneOf("new")}}
	}
}

func allowSpotToSpot(in *consolidation.Input) { in.SpotToSpot = true }

func TestConvergesNearTheBound(t *testing.T) {
	t.Parallel()
	d := dice(7)
	market := realMarket(t, 16, 32)
	in := fleet(t, []cluster.Pool{{Name: "general", NodeClass: "default"}}, mixedPods(2500, 50, &d), market)
	scaleDown(&in, 50, &d)
	for round := 0; ; round++ {
		out := consolidation.Find(in)
		if len(out.Moves) == 0 {
			var pods []cluster.Pod
			for _, n := range in.Snapshot.Nodes {
				pods = append(pods, n.Pods...)
			}
			bound := packing.Solve(cluster.Snapshot{Pools: in.Snapshot.Pools, Pods: pods}, market, packing.DefaultEffort).LowerBound
			gap := float64(out.Price)/float64(bound) - 1
			t.Logf("after %d rounds the fleet costs %s, %.1f %% above the bound", round, out.Price, 100*gap)
			if gap > 0.05 {
				t.Errorf("the fleet costs %.1f %% more than the bound, want at most 5 %%", 100*gap)
			}
			return
		}
		if round == 8 {
			t.Fatal("the fleet does not converge in 8 rounds")
		}
		in = afterMoves(t, in, out.Moves, round)
	}
}

// TestMaxRemovals: six of the twelve nodes are removed, or fewer if MaxRemovals allows fewer.
func TestMaxRemovals(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	var halves []nodeSpec
	for range 12 {
		halves = append(halves, nodeSpec{4, catalog.OnDemand, 4 * cent, []int64{1500}})
	}
	for limit, want := range map[int]int{0: 0, 1: 1, 4: 4, 6: 6, 9: 6, 12: 6} {
		in := fleetOf(market, halves...)
		in.MaxRemovals = map[string]int{"general": limit, "another": 0}
		out := consolidation.Find(in)
		gone := 0
		for _, m := range out.Moves {
			gone += len(m.Nodes)
		}
		if gone != want {
			t.Errorf("%d nodes are removed with MaxRemovals %d, want %d", gone, limit, want)
		}
	}
}
