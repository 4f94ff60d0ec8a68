package packing_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// TestCrossedSpreads checks that pods with spreads that select other pods are all placed. A valid plan always exists:
// the pods of each letter are assigned to the zones in turn, and each pod has a node of its own.
func TestCrossedSpreads(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		letters := 2 + r.IntN(6)
		letter := func() string { return string(rune('a' + r.IntN(letters))) }
		var pods []cluster.Pod
		for i := range 20 + r.IntN(150) {
			p := cluster.Pod{
				Namespace: "default", Name: fmt.Sprintf("pod-%03d", i), Labels: requirements.Labels{"letter": letter()},
				Requests: resources.Amounts{CPU: 250 * (1 + r.Int64N(8)), Memory: (1 + r.Int64N(8)) << 29, Pods: 1},
			}
			spread := cluster.Spread{
				MaxSkew:  1 + r.IntN(2),
				Selector: cluster.Selector{Labels: requirements.Requirements{"letter": requirements.OneOf(letter())}},
			}
			switch r.IntN(3) { // a third of the pods have no spread
			case 0:
				spread.Key = catalog.LabelZone
				p.Spread = []cluster.Spread{spread}
			case 1:
				spread.Key = "kubernetes.io/hostname"
				p.Spread = []cluster.Spread{spread}
			}
			pods = append(pods, p)
		}
		s, market := cluster.Snapshot{Pools: anyPool, Pods: pods}, bigMarket(catalog.OnDemand)
		plan := packing.Solve(s, market, packing.DefaultEffort)
		if len(plan.Refusals) > 0 {
			t.Errorf("seed %d: %d of %d pods are refused, want none: %+v", seed, len(plan.Refusals), len(pods), plan.Refusals[0])
		}
		if broken := verify.Check(s, market, plan); len(broken) > 0 {
			t.Errorf("seed %d: %d rules violated, the first: %s", seed, len(broken), broken[0])
		}
	}
}
