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

// shop returns a market of types with these cores in one zone, with a price per core for each capacity type.
func shop(prices map[string]catalog.Price, cores ...int64) catalog.Market {
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

// row describes one node of a type with pods of these millicores.
type row struct {
	cores        int64
	capacityType string
	price        catalog.Price
	pods         []int64
}

// rows returns a fleet of nodes n0, n1 and so on.
func rows(market catalog.Market, all ...row) consolidation.Input {
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
		settle(&n)
		in.Snapshot.Nodes = append(in.Snapshot.Nodes, n)
		in.Nodes[n.Name] = consolidation.Candidate{Price: r.price, Cost: float64(len(r.pods))}
	}
	return in
}

// TestRules: the moves that are allowed, and the saving that each needs.
func TestRules(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	onDemand := map[string]catalog.Price{catalog.OnDemand: cent}
	both := map[string]catalog.Price{catalog.OnDemand: cent, catalog.Spot: cent / 2}
	reserved := map[string]catalog.Price{catalog.OnDemand: cent, catalog.Reserved: 0}
	full := row{4, catalog.OnDemand, 4 * cent, []int64{3900}}
	var many []int64
	for n := range int64(30) {
		many = append(many, n+1)
	}
	halves := []row{{4, catalog.OnDemand, 4 * cent, []int64{1500}}, {4, catalog.OnDemand, 4 * cent, []int64{1500}}}
	for name, c := range map[string]struct {
		in       consolidation.Input
		change   func(*consolidation.Input)
		goes     []string
		machines int
		saving   catalog.Price
	}{
		"two half-empty nodes": {in: rows(shop(onDemand, 4), halves...), goes: []string{"n0"}, saving: 4 * cent},
		"empty node": {in: rows(shop(onDemand, 4),
			row{4, catalog.OnDemand, 4 * cent, nil}), goes: []string{"n0"}, saving: 4 * cent},
		"full node": {in: rows(shop(onDemand, 4), row{4, catalog.OnDemand, 4 * cent, []int64{3900}})},
		"oversized node": {in: rows(shop(onDemand, 2, 4),
			row{4, catalog.OnDemand, 4 * cent, []int64{1500}}), goes: []string{"n0"}, machines: 1, saving: 2 * cent},
		"equivalent replacement": {in: rows(shop(onDemand, 2, 8),
			row{8, catalog.OnDemand, 8 * cent, []int64{5000}}, row{2, catalog.OnDemand, 2 * cent, []int64{1500}}),
			goes: []string{"n1"}, saving: 2 * cent},
		"equivalent does not fit all pods": {in: rows(shop(onDemand, 2, 8),
			row{8, catalog.OnDemand, 8 * cent, []int64{5000}}, row{2, catalog.OnDemand, 2 * cent, []int64{1500}}),
			change: renewed, goes: []string{"n0", "n1"}, machines: 1, saving: 2 * cent},
		"cheaper equivalent": {in: rows(shop(onDemand, 2, 8),
			row{8, catalog.OnDemand, 9 * cent, []int64{5000}}, row{2, catalog.OnDemand, 2 * cent, []int64{1500}}),
			goes: []string{"n0", "n1"}, machines: 1, saving: 3 * cent},
		"no candidate": {in: rows(shop(onDemand, 4), halves...),
			change: func(in *consolidation.Input) { clear(in.Nodes) }},
		"below the pool's saving": {in: rows(shop(onDemand, 4), halves...),
			change: rule(consolidation.Rule{LeastSaving: 5 * cent})},
		"the pool's saving": {in: rows(shop(onDemand, 4), halves...),
			change: rule(consolidation.Rule{LeastSaving: 4 * cent}), goes: []string{"n0"}, saving: 4 * cent},
		"below the pool's share": {in: rows(shop(onDemand, 2, 4),
			row{4, catalog.OnDemand, 4 * cent, []int64{1500}}), change: rule(consolidation.Rule{LeastShare: 0.6})},
		"too many pods": {in: rows(shop(onDemand, 3, 4),
			row{4, catalog.OnDemand, 4 * cent, []int64{1500}}), change: rule(consolidation.Rule{LeastWorth: 0.5})},
		"on-demand to one reservation": {in: rows(shop(reserved, 4), full, full), goes: []string{"n0"},
			machines: 1, saving: 4 * cent},
		"reserved node": {in: rows(shop(reserved, 2, 4), row{4, catalog.Reserved, 0, []int64{1500}})},
		"on-demand to spot": {in: rows(shop(both, 4),
			row{4, catalog.OnDemand, 4 * cent, []int64{3900}}), goes: []string{"n0"}, machines: 1, saving: 2 * cent},
		"spot to cheaper spot": {in: rows(shop(both, many...), row{30, catalog.Spot, 15 * cent, []int64{900}})},
		"spot to spot allowed": {in: rows(shop(both, many...),
			row{30, catalog.Spot, 15 * cent, []int64{900}}), change: spots, goes: []string{"n0"}, machines: 1, saving: 15*cent - cent/2},
		"too few spot types": {in: rows(shop(both, 1, 30),
			row{30, catalog.Spot, 15 * cent, []int64{900}}), change: spots},
		"spot onto existing nodes": {in: rows(shop(both, 4),
			row{4, catalog.Spot, 2 * cent, []int64{900}}, row{4, catalog.Spot, 2 * cent, []int64{900}}), goes: []string{"n0"}, saving: 2 * cent},
		"unknown price": {in: rows(shop(onDemand, 2, 4), row{4, catalog.OnDemand, 0, []int64{1500}})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.change != nil {
				c.change(&c.in)
			}
			out := consolidation.Find(c.in)
			var goes []string
			var machines []packing.PlannedNode
			for _, m := range out.Moves {
				goes, machines = append(goes, m.Nodes...), append(machines, m.PlannedNodes...)
				twice := m.Price - m.Saving // the price of the planned nodes
				if got, want := m.PaybackTime(time.Hour).Hours(), float64(twice)/float64(m.Saving); math.Abs(got-want) > 1e-6 {
					t.Errorf("the payback time is %v hours, want %v", got, want)
				}
			}
			if !slices.Equal(goes, c.goes) || len(machines) != c.machines || out.Saving != c.saving {
				t.Errorf("%v are replaced with %d nodes, which saves %s; want %v, %d, %s", goes, len(machines), out.Saving, c.goes, c.machines, c.saving)
			}
			for _, m := range machines {
				types := map[string]bool{}
				for _, o := range m.Offerings {
					types[o.InstanceType] = true
				}
				if c.in.SpotToSpot && len(types) != 15 {
					t.Errorf("%d types may replace a spot instance, want 15", len(types))
				}
			}
		})
	}
}

func rule(r consolidation.Rule) func(*consolidation.Input) {
	return func(in *consolidation.Input) { in.Rules = map[string]consolidation.Rule{"general": r} }
}

// renewed gives the pool a label that its nodes lack and the pods of n1 require.
func renewed(in *consolidation.Input) {
	in.Snapshot.Pools[0].Labels = requirements.Labels{"tier": "new"}
	for i := range in.Snapshot.Nodes[1].Pods {
		in.Snapshot.Nodes[1].Pods[i].Required = []requirements.Requirements{{"tier": requirements.OneOf("new")}}
	}
}

func spots(in *consolidation.Input) { in.SpotToSpot = true }

// TestEndsNearTheBound: a converged fleet costs little more than the lower bound.
func TestEndsNearTheBound(t *testing.T) {
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
			least := packing.Solve(cluster.Snapshot{Pools: in.Snapshot.Pools, Pods: pods}, market, packing.Usual).LowerBound
			gap := float64(out.Price)/float64(least) - 1
			t.Logf("after %d rounds %s is %.1f %% above the bound", round, out.Price, 100*gap)
			if gap > 0.05 {
				t.Errorf("%.1f %% above the bound", 100*gap)
			}
			return
		}
		if round == 8 {
			t.Fatal("the fleet does not converge")
		}
		in = done(t, in, out.Moves, round)
	}
}

// TestRooms: as many nodes of a pool are removed as its budget allows, and no more.
func TestRooms(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := shop(map[string]catalog.Price{catalog.OnDemand: cent}, 4)
	var halves []row
	for range 12 {
		halves = append(halves, row{4, catalog.OnDemand, 4 * cent, []int64{1500}})
	}
	for room, want := range map[int]int{0: 0, 1: 1, 4: 4, 6: 6, 9: 6, 12: 6} {
		in := rows(market, halves...)
		in.MaxRemovals = map[string]int{"general": room, "another": 0}
		out := consolidation.Find(in)
		gone := 0
		for _, m := range out.Moves {
			gone += len(m.Nodes)
		}
		if gone != want {
			t.Errorf("%d nodes are removed with a budget of %d, want %d", gone, room, want)
		}
	}
}
