package controller

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// TestNonsenseKeepsNodesAndIsNamed: an invalid budget that the schema accepts, and an invalid schedule, block the disruption of
// the pool's nodes, and its condition names them. Nodes are launched as before. When the settings are fixed, the condition and
// then the nodes go.
func TestNonsenseKeepsNodesAndIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget karpv1.Budget
		field  string
	}{
		"a budget of 200%": {karpv1.Budget{Nodes: "200%"}, `spec.disruption.budgets[0].nodes: "200%" is more than 100%`},
		"an invalid schedule": {karpv1.Budget{Nodes: "2", Schedule: ptr.To("61 25 * * *"),
			Duration: &karpv1.Duration{Duration: 1}}, "spec.disruption.budgets[0].schedule"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newPark(t, 2, "1500m", "400m", "t3.medium")
			said := func() (karpv1.NodePool, string) {
				_, err := f.Pools.Reconcile(t.Context(), named("apps"))
				f.check(t, err)
				p := f.pool(t)
				got, _ := p.StatusConditions().Find(karpv1.ConditionDisruptionPolicyValid)
				return *p, string(got.Status) + ": " + got.Message
			}
			f.budgets(t, c.budget)
			if pool, text := said(); !strings.HasPrefix(text, "False: ") || !strings.Contains(text, c.field) || !pool.StatusConditions().IsReady() {
				t.Fatalf("it says %q, want %q in it, and the pool is ready: %t", text, c.field, pool.StatusConditions().IsReady())
			}
			before := f.text(t)
			for range 10 {
				f.round(t)
			}
			if f.text(t) != before {
				t.Fatalf("something was done\n%s\n%s", f.text(t), f.log)
			}
			f.pending(t, "more", "1900m", "1Gi")
			f.plan(t)
			if n := len(f.claims(t)); n != 3 {
				t.Fatalf("there are %d claims for one more pod, want 3\n%s", n, f.log)
			}
			f.work(t)
			f.join(t)
			f.work(t)
			f.wanted = 3
			f.budgets(t, karpv1.Budget{Nodes: "100%"})
			if _, text := said(); strings.Contains(text, "budgets") {
				t.Errorf("the settings are fixed, but the condition is %q", text)
			}
			f.live(t)
			if got := f.types(); got != "2 t3.medium" {
				t.Errorf("remaining: %s\n%s", got, f.log)
			}
		})
	}
}
