package packing_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// worstRatio is the maximum price of a plan for a few pods, relative to the cheapest plan. A plan may cost this
// much more if it has fewer pods of a class on one node.
const worstRatio = 1.02

// TestOracle compares plans for a few pods with the cheapest of all plans. It tries every partition of the pods, with
// each part on the cheapest offering that fits.
func TestOracle(t *testing.T) {
	t.Parallel()
	sum, plans, best := 0.0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s, market := drawSnapshot(t), drawMarket(t)
		s.Pools, s.Nodes, s.Daemons = []cluster.Pool{{Name: "general", NodeClass: "default"}}, nil, nil
		s.Pods = s.Pods[:min(len(s.Pods), 6)] // six pods have 203 partitions
		for i := range s.Pods {
			s.Pods[i].Preferred = nil // preferences have precedence over the price
		}
		plan := packing.Solve(s, market, packing.DefaultEffort)
		want := bestPrice(s, market)
		if len(plan.Refusals) > 0 || len(s.Pods) == 0 {
			if len(plan.Refusals) > 0 && !math.IsInf(want, 1) {
				t.Fatalf("%d pods refused, but a plan for all costs %.9f dollars", len(plan.Refusals), want/1e9)
			}
			return
		}
		ratio := float64(plan.Price) / want
		if ratio > worstRatio+1e-9 {
			t.Errorf("the plan costs %s, the cheapest %.9f dollars, want at most 2 %% more", plan.Price, want/1e9)
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

// bestPrice returns the price of the cheapest plan. It tries every partition of the pods.
func bestPrice(s cluster.Snapshot, market catalog.Market) float64 {
	best := math.Inf(1)
	everyPartition(s.Pods, func(parts [][]cluster.Pod) {
		best = min(best, partsPrice(s, market, parts))
	})
	return best
}

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

// partPrice returns the price of the cheapest offering with room for all these pods.
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

// TestOracleWithHostSpreads compares the lower bound of plans with host spreads to the cheapest of all plans that
// kube-scheduler would bind. kube-scheduler allows more than maxSkew pods on a host if all hosts have some of the pods.
// So a bound that assumes at most maxSkew pods on every node is too high. The assumption holds only if some full node
// has none of the pods.
func TestOracleWithHostSpreads(t *testing.T) {
	t.Parallel()
	costlier, tight := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s, market := cluster.Snapshot{Pools: anyPool}, drawMarket(t)
		for i := range rapid.IntRange(0, 2).Draw(t, "nodes") {
			n := fullNode(fmt.Sprintf("node-%d", i))
			for _, app := range appNames[:2] {
				k := &cluster.PodKind{Namespace: "default", Labels: requirements.Labels{"app": app}}
				n.Residents = append(n.Residents, cluster.Resident{PodKind: k, Count: rapid.IntRange(0, 2).Draw(t, "residents")})
			}
			s.Nodes = append(s.Nodes, n)
		}
		for _, app := range appNames[:rapid.IntRange(1, 2).Draw(t, "apps")] {
			p := cluster.Pod{
				Namespace: "default", Labels: requirements.Labels{"app": app},
				Requests: resources.Amounts{CPU: int64(rapid.IntRange(1, 30).Draw(t, "cpu")) * 100, Memory: 1 << 29, Pods: 1},
				Spread: []cluster.Spread{{
					Key: "kubernetes.io/hostname", MaxSkew: rapid.IntRange(1, 2).Draw(t, "maxSkew"),
					MinDomains: rapid.IntRange(0, 3).Draw(t, "minDomains"),
					Selector:   cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf(app)}},
				}},
			}
			for i := range rapid.IntRange(1, 3).Draw(t, "replicas") {
				p.Name = fmt.Sprintf("%s-%d", app, i)
				s.Pods = append(s.Pods, p)
			}
		}
		plan := packing.Solve(s, market, packing.DefaultEffort)
		if len(plan.Refusals) > 0 {
			return
		}
		best := math.Inf(1)
		everyPartition(s.Pods, func(parts [][]cluster.Pod) {
			if bindsAll(s, parts) {
				best = min(best, partsPrice(s, market, parts))
			}
		})
		if float64(plan.LowerBound) > best {
			t.Errorf("the bound is %s, but a plan costs %.9f dollars", plan.LowerBound, best/1e9)
		}
		costlier += oneIf(best < float64(plan.Price))
		tight += oneIf(float64(plan.LowerBound) == best && len(s.Nodes) > 0)
	})
	if costlier == 0 || tight == 0 {
		t.Errorf("%d plans cost more than the cheapest, %d bounds equal the cheapest with existing nodes: want some of both", costlier, tight)
	}
}

// fullNode returns a node without room for any pod.
func fullNode(name string) cluster.Node {
	return cluster.Node{
		Name: name, Joined: true, Initialized: true, Labels: requirements.Labels{"kubernetes.io/hostname": name},
		Allocatable: resources.Amounts{CPU: 2000, Memory: 8 << 30, Pods: 8}, Requested: resources.Amounts{CPU: 2000, Pods: 8},
	}
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// bindsAll binds the pods to the nodes of their parts, one at a time, and reports whether it can bind all. Of the hosts
// that allow one more pod of an app, it chooses the host with the fewest pods of the app. Every host counts for every
// spread.
func bindsAll(s cluster.Snapshot, parts [][]cluster.Pod) bool {
	for _, app := range appNames[:2] {
		var bound, waiting []int // by host: pods of the app, and pods that are not bound yet
		var rule cluster.Spread
		for _, n := range s.Nodes {
			i := slices.IndexFunc(n.Residents, func(r cluster.Resident) bool { return r.Labels["app"] == app })
			bound, waiting = append(bound, n.Residents[i].Count), append(waiting, 0)
		}
		for _, part := range parts {
			bound, waiting = append(bound, 0), append(waiting, 0)
			for _, p := range part {
				if p.Labels["app"] == app {
					rule = p.Spread[0]
					waiting[len(waiting)-1]++
				}
			}
		}
		for slices.Max(waiting) > 0 {
			fewest, host := slices.Min(bound), -1
			if len(bound) < rule.MinDomains {
				fewest = 0
			}
			for h := range bound {
				if waiting[h] > 0 && bound[h]+1-fewest <= rule.MaxSkew && (host < 0 || bound[h] < bound[host]) {
					host = h
				}
			}
			if host < 0 {
				return false
			}
			bound[host]++
			waiting[host]--
		}
	}
	return true
}

func partsPrice(s cluster.Snapshot, market catalog.Market, parts [][]cluster.Pod) float64 {
	sum := 0.0
	for _, part := range parts {
		sum += partPrice(s, market, part)
	}
	return sum
}
