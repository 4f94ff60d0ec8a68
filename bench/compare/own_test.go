package compare

import (
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// TestOwnMixHasRoomForAll: no pod of upstream's own mix is hopeless, whatever its constraints. Its spread constraints
// only require that the pods of a letter are evenly distributed. Without limits on nodes, a round-robin placement
// achieves that, so a plan must not refuse any pod.
func TestOwnMixHasRoomForAll(t *testing.T) {
	for _, w := range workload.All("") {
		if !strings.HasPrefix(w.Name, "own-") || w.Name == "own-preferences" {
			continue
		}
		c, err := w.Build()
		if err != nil {
			t.Fatal(err)
		}
		s := c.Objects.Snapshot(c.View())
		plan := packing.Solve(s, c.Market, packing.Usual)
		if len(plan.Refusals) > 0 {
			t.Errorf("%s: %d pods are refused, the first: %+v", w.Name, len(plan.Refusals), plan.Refusals[0])
		}
		if broken := verify.Check(s, c.Market, plan); len(broken) > 0 {
			t.Errorf("%s: %d rules broken, the first: %s", w.Name, len(broken), broken[0])
		}
		if plan.Pods != c.Pending {
			t.Errorf("%s: a plan for %d of %d pods", w.Name, plan.Pods, c.Pending)
		}
	}
}
