package compare

import (
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// TestKarpenterMixHasRoomForAll checks that plans for the pod mix of Karpenter's benchmark refuse no pod. The spread
// constraints of these pods only require that pods with the same label are evenly distributed. A plan can always meet
// this: it can assign the pods to its nodes in turn.
func TestKarpenterMixHasRoomForAll(t *testing.T) {
	for _, w := range workload.All("") {
		if !strings.HasPrefix(w.Name, "own-") || w.Name == "own-preferences" { // not the mix
			continue
		}
		c, err := w.Build()
		if err != nil {
			t.Fatal(err)
		}
		s := c.Objects.Snapshot(c.View())
		plan := packing.Solve(s, c.Market, packing.DefaultEffort)
		if len(plan.Refusals) > 0 {
			t.Errorf("%s: %d pods are refused, want none; the first: %+v", w.Name, len(plan.Refusals), plan.Refusals[0])
		}
		if broken := verify.Check(s, c.Market, plan); len(broken) > 0 {
			t.Errorf("%s: %d rules broken, want none; the first: %s", w.Name, len(broken), broken[0])
		}
		if plan.Pods != c.Pending {
			t.Errorf("%s: the plan has %d of %d pods, want all", w.Name, plan.Pods, c.Pending)
		}
	}
}
