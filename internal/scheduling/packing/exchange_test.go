package packing_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// TestPodExchange checks that the average price stays near the lower bound if nodes must exchange pods: the free room
// on each node is too small for another pod, but large in total.
func TestPodExchange(t *testing.T) {
	t.Parallel()
	market, sum := coresMarket(60), 0.0
	const seeds = 12
	for seed := range uint64(seeds) {
		d := dice(seed + 1)
		s := cluster.Snapshot{Pools: anyPool, Pods: ruledPods(60+d.roll(120), &d)}
		plan := packing.Solve(s, market, packing.DefaultEffort)
		if len(plan.Refusals) > 0 {
			t.Fatalf("seed %d: %d pods are refused, want none: %+v", seed, len(plan.Refusals), plan.Refusals[0])
		}
		if broken := verify.Check(s, market, plan); len(broken) > 0 {
			t.Fatalf("seed %d: %d rules broken, the first: %s", seed, len(broken), broken[0])
		}
		if diff := cmp.Diff(plan, packing.Solve(shuffle(s), shuffleMarket(market), packing.DefaultEffort), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: the order of the input changes the plan:\n%s", seed, diff)
		}
		sum += float64(plan.Price)/float64(plan.LowerBound) - 1
	}
	if gap := 100 * sum / seeds; gap > 11 { // usually 9: the bound ignores preferences
		t.Errorf("the price is on average %.2f %% above the lower bound, want at most 11 %%", gap)
	}
}

// TestEmptiedNodesAreDropped checks that a node whose last pod moved to another node is not launched: verify.Check
// reports planned nodes without pods.
func TestEmptiedNodesAreDropped(t *testing.T) {
	t.Parallel()
	market := realMarket(t)
	for seed := range uint64(40) {
		d := dice(seed + 1)
		s := cluster.Snapshot{Pools: anyPool, Pods: mixedPods(30+d.roll(60), 2+d.roll(4), seed)}
		plan := packing.Solve(s, market, packing.DefaultEffort)
		if broken := verify.Check(s, market, plan); len(broken) > 0 {
			t.Errorf("seed %d: %v", seed, broken)
		}
	}
}

// coresMarket returns instance types with 1 to maxCores cores in three zones. Each core has the same price.
func coresMarket(maxCores int64) catalog.Market {
	var types []catalog.Type
	for n := range maxCores {
		n++
		name := fmt.Sprintf("any-%03d", n)
		full := resources.Amounts{CPU: 1000 * n, Memory: 2 * n << 30, Pods: 10 * n}
		typ := catalog.Type{
			Name: name, Capacity: full, Allocatable: full.Sub(resources.Amounts{CPU: 100, Memory: 10 << 20}),
			Labels: requirements.Labels{catalog.LabelInstanceType: name, catalog.LabelArch: "amd64", catalog.LabelOS: "linux"},
		}
		for _, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c"} {
			typ.Offerings = append(typ.Offerings, catalog.Offering{
				Zone: zone, CapacityType: catalog.OnDemand, Price: catalog.Price(n) * catalog.Dollar / 20, Available: true,
			})
		}
		types = append(types, typ.WithOfferings(typ.Offerings))
	}
	return catalog.Market{"default": {Region: "us-east-1", Types: types}}
}

// ruledPods returns pods with random requests, labels and at most one topology rule each.
func ruledPods(count int, d *dice) []cluster.Pod {
	letter := func() string { return string(rune('a' + d.roll(4))) }
	selector := func(key, value string) cluster.Selector {
		return cluster.Selector{Labels: requirements.Requirements{key: requirements.OneOf(value)}}
	}
	var out []cluster.Pod
	for n := range count {
		p := cluster.Pod{
			Namespace: "default", Name: fmt.Sprintf("pod-%04d", n), Owner: fmt.Sprintf("ReplicaSet/app-%d", n/3),
			Requests: resources.Amounts{
				CPU: []int64{100, 250, 500, 1000, 1500}[d.roll(5)], Memory: []int64{100, 256, 512, 1024, 2048, 4096}[d.roll(6)] << 20, Pods: 1,
			},
			Labels: requirements.Labels{"letter": letter()},
		}
		key := []string{catalog.LabelZone, "kubernetes.io/hostname"}[d.roll(2)]
		switch d.roll(7) {
		case 0, 1:
			p.Spread = []cluster.Spread{{Key: key, MaxSkew: 1 + d.roll(2), Selector: selector("letter", letter()), Soft: d.roll(3) == 0}}
		case 2:
			p.Labels = requirements.Labels{"near": letter()}
			p.Affinity = []cluster.Term{{Key: catalog.LabelZone, Namespaces: []string{"default"}, Selector: selector("near", p.Labels["near"])}}
		case 3, 4:
			p.Labels = requirements.Labels{"app": "apart"}
			p.AntiAffinity = []cluster.Term{{Key: "kubernetes.io/hostname", Namespaces: []string{"default"}, Selector: selector("app", "apart")}}
		case 5:
			p.AntiAffinity = []cluster.Term{{Key: key, Namespaces: []string{"default"}, Selector: selector("letter", letter()),
				Weight: 1 + d.roll(9)}}
		}
		out = append(out, p)
	}
	return out
}
