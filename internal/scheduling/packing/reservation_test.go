package packing_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scenario"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// TestReservations checks that with capacity reservations, and with NodePools whose minValues are relaxable, no plan
// violates a rule or costs less than its lower bound.
func TestReservations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, market := drawSnapshot(t), drawMarket(t)
		drawReservations(t, market)
		for i := range s.Pools {
			s.Pools[i].RelaxesMinValues = rapid.Bool().Draw(t, "relaxable")
		}
		for i := range s.Nodes {
			if rapid.IntRange(0, 3).Draw(t, "launching") == 0 {
				s.Nodes[i].Joined, s.Nodes[i].Initialized = false, false
				s.Nodes[i].Labels[catalog.LabelReservationID] = "cr-m0.large-us-east-1a" // as named by drawReservations
			}
		}
		for i := range s.Pods {
			drawCapacityType(t, &s.Pods[i])
		}
		plan := packing.Solve(s, market, packing.DefaultEffort)
		for _, broken := range verify.Check(s, market, plan) {
			t.Error(broken)
		}
		if !slices.ContainsFunc(s.Pools, func(p cluster.Pool) bool { return !p.RelaxesMinValues }) {
			for _, r := range plan.Refusals {
				if slices.ContainsFunc(r.Reasons, func(r packing.Reason) bool { return r.Code == packing.MinValues }) {
					t.Errorf("%s is refused for relaxable minValues, want no such refusal", r.Pod)
				}
			}
		}
		again := packing.Solve(shuffle(s), shuffleMarket(market), packing.DefaultEffort)
		if diff := cmp.Diff(plan, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the order of the input changes the plan:\n%s", diff)
		}
	})
}

func drawReservations(t *rapid.T, market catalog.Market) {
	types := market["default"].Types
	for i := range types {
		for _, zone := range zoneNames {
			if rapid.IntRange(0, 2).Draw(t, "reserved") > 0 {
				continue
			}
			types[i] = types[i].WithOfferings(append(slices.Clone(types[i].Offerings), catalog.Offering{
				Zone: zone, CapacityType: catalog.Reserved, Available: true, Price: catalog.Price(rapid.IntRange(0, 9).Draw(t, "price")),
				Reservation: catalog.Reservation{
					ID: "cr-" + types[i].Name + "-" + zone, Type: catalog.ReservationDefault, Left: rapid.IntRange(0, 2).Draw(t, "left"),
				},
			}))
		}
	}
}

func drawCapacityType(t *rapid.T, p *cluster.Pod) {
	capacityTypes := []string{catalog.Reserved, catalog.OnDemand, catalog.Spot}
	switch rapid.IntRange(0, 5).Draw(t, "rule") {
	case 0:
		p.Required = []requirements.Requirements{{catalog.LabelCapacityType: requirements.OneOf(catalog.Reserved)}}
	case 1:
		capacityType := rapid.SampledFrom(capacityTypes).Draw(t, "preferred")
		p.Preferred = []cluster.Preference{{Weight: 5,
			Requirements: requirements.Requirements{catalog.LabelCapacityType: requirements.OneOf(capacityType)}}}
	case 2:
		not, _ := requirements.ValuesOf(requirements.NotIn, rapid.SampledFrom(capacityTypes).Draw(t, "excluded"))
		p.Required = []requirements.Requirements{{catalog.LabelCapacityType: not}}
	}
}

// TestReservationsOracle compares plans for a few pods with the cheapest of all plans. It tries every partition of the
// pods, with each part on the cheapest offering or on a reserved instance.
func TestReservationsOracle(t *testing.T) {
	t.Parallel()
	sum, plans, best := 0.0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s, market := drawSnapshot(t), drawMarket(t)
		drawReservations(t, market)
		s.Pools, s.Nodes, s.Daemons = []cluster.Pool{{Name: "general", NodeClass: "default"}}, nil, nil
		s.Pods = s.Pods[:min(len(s.Pods), 5)]
		for i := range s.Pods {
			s.Pods[i].Preferred = nil // preferences have precedence over the price
		}
		plan := packing.Solve(s, market, packing.DefaultEffort)
		want := bestPriceWithReservations(s, market)
		if len(plan.Refusals) > 0 || len(s.Pods) == 0 {
			return
		}
		// A ratio says little if all pods fit on reserved instances, which cost nearly nothing.
		if ratio := float64(plan.Price) / want; want > float64(catalog.Dollar)/1000 {
			if ratio > worstRatio+1e-9 {
				t.Errorf("the plan costs %s, the cheapest %.9f dollars, want at most 2 %% more", plan.Price, want/1e9)
			}
			sum += ratio
			plans++
			if ratio < 1.000001 {
				best++
			}
		}
		if float64(plan.LowerBound) > want+0.5 {
			t.Errorf("the bound is %s, but a plan costs %.9f dollars", plan.LowerBound, want/1e9)
		}
	})
	if plans > 0 {
		t.Logf("%d plans, %d of them the best, on average %.2f %% above it", plans, best, 100*(sum/float64(plans)-1))
	}
}

// bestPriceWithReservations returns the price of the cheapest plan. It tries every partition of the pods, and for each
// part the cheapest unreserved offering and every reservation with an unused instance.
func bestPriceWithReservations(s cluster.Snapshot, market catalog.Market) float64 {
	best := math.Inf(1)
	taken := map[string]int{}
	var parts [][]cluster.Pod // the current partition of the pods
	var placeFrom func(i int, sum float64)
	placeFrom = func(i int, sum float64) {
		if sum >= best {
			return
		}
		if i == len(parts) {
			best = sum
			return
		}
		placeFrom(i+1, sum+unreservedPrice(s, market, parts[i]))
		for _, typ := range market["default"].Types {
			for _, o := range typ.Offerings {
				r := o.Reservation
				if r.ID == "" || taken[r.ID] >= r.Left || !verify.Fits(s, market, "general", choiceOf(typ.Name, o), parts[i]) {
					continue
				}
				taken[r.ID]++
				placeFrom(i+1, sum+float64(o.Price))
				taken[r.ID]--
			}
		}
	}
	everyPartition(s.Pods, func(all [][]cluster.Pod) {
		parts = all
		placeFrom(0, 0)
	})
	return best
}

// unreservedPrice returns the price of the cheapest offering without a reservation that has room for all these
// pods.
func unreservedPrice(s cluster.Snapshot, market catalog.Market, pods []cluster.Pod) float64 {
	best := math.Inf(1)
	for _, typ := range market["default"].Types {
		for _, o := range typ.Offerings {
			if o.Reservation.ID == "" && verify.Fits(s, market, "general", choiceOf(typ.Name, o), pods) {
				best = min(best, float64(o.Price))
			}
		}
	}
	return best
}

func choiceOf(typ string, o catalog.Offering) packing.Choice {
	return packing.Choice{InstanceType: typ, Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price, Reservation: o.Reservation.ID}
}

// TestReservationWorlds checks plans for random clusters with topology rules and capacity reservations. With few
// reserved instances, the solver may refuse a pod that another plan could place. The test counts these pods and fails
// if there are more than one per 200 worlds.
func TestReservationWorlds(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) world {
		s, market := drawSnapshot(t), drawMarket(t)
		drawTopology(t, &s)
		drawVolumes(t, &s, market)
		drawReservations(t, market)
		for i := range s.Pools {
			s.Pools[i].RelaxesMinValues = rapid.Bool().Draw(t, "relaxable")
		}
		for i := range s.Pods {
			if rapid.Bool().Draw(t, "has rule") {
				drawCapacityType(t, &s.Pods[i])
			}
		}
		return world{s, market}
	})
	starved := 0
	count := *worlds / 3
	for n := range count {
		w := draw.Example(n)
		plan := packing.Solve(w.Snapshot, w.Market, packing.DefaultEffort)
		for _, broken := range verify.Check(w.Snapshot, w.Market, plan) {
			if strings.Contains(broken, " is refused (") {
				starved++
				t.Logf("world %d: %s", n, broken)
				continue
			}
			text := scenario.Scenario{Story: "broken", Snapshot: w.Snapshot, Market: w.Market}.String()
			t.Errorf("world %d: %s\n%s%s", n, broken, text, scenario.PlanText(plan))
		}
		again := packing.Solve(shuffle(w.Snapshot), shuffleMarket(w.Market), packing.DefaultEffort)
		if diff := cmp.Diff(plan, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("world %d: the order of the input changes the plan:\n%s", n, diff)
		}
	}
	if limit := count / 200; starved > limit {
		t.Errorf("%d pods in %d worlds are refused although there is room, want at most %d", starved, count, limit)
	}
}
