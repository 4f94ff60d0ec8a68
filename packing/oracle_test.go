package packing_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/packing"
	"github.com/joiner-sh/joiner/packing/verify"
)

// worstRatio is how much more than the best a plan for a few pods may cost: as
// much as the plan may give up for another that crowds fewer pods onto one machine.
const worstRatio = 1.02

// TestOracle compares plans for a few pods with the best of all plans: every
// partition of the pods, each part on the cheapest offering that holds it.
func TestOracle(t *testing.T) {
	t.Parallel()
	sum, plans, best := 0.0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s, market := drawSnapshot(t), drawMarket(t)
		s.Pools, s.Nodes, s.Daemons = []cluster.Pool{{Name: "general", NodeClass: "default"}}, nil, nil
		s.Pods = s.Pods[:min(len(s.Pods), 6)]
		for i := range s.Pods {
			s.Pods[i].Preferred = nil // they go before the price
		}
		plan := packing.Solve(s, market, packing.Usual)
		want := bestPrice(s, market)
		if len(plan.Refusals) > 0 || len(s.Pods) == 0 {
			if len(plan.Refusals) > 0 && !math.IsInf(want, 1) {
				t.Fatalf("%d pods refused, and there is a plan for %.9f dollars", len(plan.Refusals), want/1e9)
			}
			return
		}
		ratio := float64(plan.Price) / want
		if ratio > worstRatio+1e-9 {
			t.Errorf("the plan costs %s, the best %.9f dollars", plan.Price, want/1e9)
		}
		sum += ratio
		plans++
		if ratio < 1.000001 {
			best++
		}
	})
	if plans > 0 {
		t.Logf("%d plans, %d of them the best, on average %.2f %% above it", plans, best, 100*(sum/float64(plans)-1))
	}
}

// bestPrice tries every partition of the pods.
func bestPrice(s cluster.Snapshot, market catalog.Market) float64 {
	best := math.Inf(1)
	everyPartition(s.Pods, func(parts [][]cluster.Pod) {
		sum := 0.0
		for _, part := range parts {
			sum += partPrice(s, market, part)
		}
		best = min(best, sum)
	})
	return best
}

// everyPartition calls visit with each way to split the pods into parts.
func everyPartition(pods []cluster.Pod, visit func(parts [][]cluster.Pod)) {
	var parts [][]cluster.Pod
	var assign func(i int)
	assign = func(i int) {
		if i == len(pods) {
			visit(parts)
			return
		}
		for k := range parts {
			parts[k] = append(parts[k], pods[i])
			assign(i + 1)
			parts[k] = parts[k][:len(parts[k])-1]
		}
		parts = append(parts, []cluster.Pod{pods[i]})
		assign(i + 1)
		parts = parts[:len(parts)-1]
	}
	assign(0)
}

// partPrice is the price of the cheapest offering that takes all these pods.
func partPrice(s cluster.Snapshot, market catalog.Market, pods []cluster.Pod) float64 {
	best := math.Inf(1)
	for _, t := range market["default"].Types {
		for _, o := range t.Offerings {
			c := packing.Choice{InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price}
			if verify.Fits(s, market, s.Pools[0].Name, c, pods) {
				best = min(best, float64(o.Price))
			}
		}
	}
	return best
}
