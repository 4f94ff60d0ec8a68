package verify_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// BenchmarkCheck measures Check, which should take at most 4 s on one core. The larger plan has 100,000 pods of 5,000
// deployments; four fifths of these have rules between pods. It has 5,000 planned nodes of 120 offerings each, and
// 2,000 existing nodes with 40,000 residents.
func BenchmarkCheck(b *testing.B) {
	for _, deployments := range []int{500, 5000} {
		b.Run(fmt.Sprintf("%d-pods", 20*deployments), func(b *testing.B) {
			w := mixedWorld(deployments)
			if got := w.check(); len(got) > 0 {
				b.Fatalf("%d violations, the first is %s", len(got), got[0])
			}
			b.ReportAllocs()
			for b.Loop() {
				verify.Check(w.Snapshot, w.Market, w.plan)
			}
		})
	}
}

// mixedWorld returns deployments of 20 pods each. Equal parts of them have no rules, a spread over
// zones, a spread over hosts, affinity by zone, and anti-affinity by host.
func mixedWorld(deployments int) *world {
	w := newWorld()
	types := []catalog.Type{}
	for i := range 60 {
		types = append(types, typeOf(fmt.Sprint("t", i), 64))
	}
	w.Market["default"] = catalog.Catalog{Types: types}
	zones := []string{"a", "b", "c"}
	for i := range deployments * 2 / 5 {
		residents := []cluster.Resident{}
		for k := range 20 {
			residents = append(residents, existing(fmt.Sprint("old", (i+k)%500), 1))
		}
		w.node(fmt.Sprint("n", i), zones[i%3], residents...).Taints = taint("full")
	}
	for i := range deployments {
		w.launch("")
		for _, t := range types {
			for _, capacityType := range []string{catalog.Spot, catalog.OnDemand} {
				c := choice(t.Name, zones[i%3], capacityType)
				c.Price *= 16 // 64 CPUs, not 4
				w.addOffering(i, c)
			}
		}
	}
	for i := range w.plan.PlannedNodes {
		pn := &w.plan.PlannedNodes[i]
		slices.SortStableFunc(pn.Offerings, func(a, b packing.Choice) int { return cmp.Compare(a.Price, b.Price) })
	}
	perZone := deployments / 3 // planned nodes in each zone
	for d := range deployments {
		name := fmt.Sprint("app", d)
		rule := [][]func(*cluster.Pod){
			nil, rules(spread(zone, 1, name)), rules(spread(hostname, 1, name)), rules(affinityTo(zone, name)),
			rules(antiAffinityTo(hostname, name)),
		}[d%5]
		for k := range 20 {
			z := k % 3
			if d%5 == 3 { // affinity: all pods in one zone
				z = d / 5 % 3
			}
			p := w.pod(fmt.Sprintf("%s-%d", name, k), rule...)
			pn := &w.plan.PlannedNodes[z+3*((d*20+k)%perZone)]
			pn.Pods = append(pn.Pods, p.ID())
		}
	}
	return w
}
