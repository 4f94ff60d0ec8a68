package packing_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// solveMeasured plans for the pods of s and n pods of the kind. It returns the plan and the number of bytes that Solve
// allocated.
func solveMeasured(k hostileKind, n int, s cluster.Snapshot) (packing.Plan, uint64) {
	s.Pods = append(s.Pods, hostilePods(k, n)...)
	market := fewTypes()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan := packing.Solve(s, market, packing.DefaultEffort)
	runtime.ReadMemStats(&after)
	return plan, after.TotalAlloc - before.TotalAlloc
}

// TestHostileGrowth checks that four times as many hostile pods take at most six times the memory and work, plus a
// constant. If every pod has rules about every other pod, the limit is twenty times. The memory stays below a fifth of
// the controller's limit in the chart. BenchmarkHostile uses more pods. Not parallel, because the test counts allocated
// bytes.
func TestHostileGrowth(t *testing.T) { //nolint:paralleltest // it counts what all tests allocate
	const maxBytes = 200 << 20
	for _, k := range hostileKinds {
		few := max(k.n/16, 1)
		fewPlan, fewBytes := solveMeasured(k, few, cluster.Snapshot{Pools: anyPool})
		manyPlan, manyBytes := solveMeasured(k, 4*few, cluster.Snapshot{Pools: anyPool})
		maxGrowth := uint64(6)
		if strings.HasSuffix(k.name, "-by-pod") {
			maxGrowth = 20 // every pod has rules about every other pod; the limit of rules per plan stops the growth
		}
		if manyBytes > maxGrowth*fewBytes+16<<20 {
			t.Errorf("%s: %d pods allocate %d MB, and %d pods %d MB, want at most %d times as much, plus 16 MB",
				k.name, few, fewBytes>>20, 4*few, manyBytes>>20, maxGrowth)
		}
		if manyPlan.Steps > int(maxGrowth)*fewPlan.Steps+3_000_000 {
			t.Errorf("%s: %d pods take %d steps, and %d pods %d, want at most %d times as many, plus 3,000,000",
				k.name, few, fewPlan.Steps, 4*few, manyPlan.Steps, maxGrowth)
		}
		if manyBytes > maxBytes {
			t.Errorf("%s: %d pods allocate %d MB, want at most %d MB", k.name, 4*few, manyBytes>>20, maxBytes>>20)
		}
		for _, p := range []packing.Plan{fewPlan, manyPlan} {
			if got := len(p.Refusals) + len(p.Placements) + podsOnNewNodes(p); got != p.Pods {
				t.Errorf("%s: %d of %d pods are placed or refused, want all", k.name, got, p.Pods)
			}
		}
	}
}

func podsOnNewNodes(p packing.Plan) int {
	n := 0
	for _, node := range p.PlannedNodes {
		n += len(node.Pods)
	}
	return n
}

// TestHostilePlansAreValid checks that plans with a few hostile pods violate no rule, and refuse no pod that fits.
func TestHostilePlansAreValid(t *testing.T) {
	t.Parallel()
	for _, k := range hostileKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := cluster.Snapshot{Pools: anyPool, Pods: append(mixedPods(20, 5, 1), hostilePods(k, min(2*k.n, 8))...)}
			market := fewTypes()
			for _, wrong := range verify.Check(s, market, packing.Solve(s, market, packing.DefaultEffort)) {
				t.Error(wrong)
			}
		})
	}
}

func TestOrdinaryBesideHostile(t *testing.T) {
	t.Parallel()
	for _, k := range hostileKinds {
		n := min(k.n, 20)
		s := cluster.Snapshot{Pools: anyPool, Pods: append(mixedPods(50, 10, 1), hostilePods(k, n)...)}
		for _, r := range packing.Solve(s, fewTypes(), packing.DefaultEffort).Refusals {
			if strings.HasPrefix(r.Pod, "default/") {
				t.Errorf("%s: the ordinary pod %s is refused, want it placed: %+v", k.name, r.Pod, r.Reasons)
			}
		}
	}
}

// fewTypes returns a market with the instance types of one family.
func fewTypes() catalog.Market {
	var types []catalog.Type
	for _, size := range sizes {
		types = append(types, bigType("m5", "amd64", fmt.Sprint(size.name), 2*size.n, 8*size.n, size.pods,
			catalog.Price(960*size.n)*100_000, []string{"on-demand"}))
	}
	return catalog.Market{"default": {Region: "us-east-1", Types: types}}
}
