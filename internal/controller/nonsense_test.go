package controller

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// TestInvalidBudgetsBlockDisruption: an invalid budget that the schema accepts, or an invalid schedule, blocks the
// disruption of the pool's nodes. A condition of the pool names the field. Nodes are launched as before. When the
// setting is fixed, nodes are removed.
func TestInvalidBudgetsBlockDisruption(t *testing.T) {
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
			f := newReplicaRig(t, 2, "1500m", "400m", "t3.medium")
			reconcilePool := func() (_ karpv1.NodePool, policy string) { // the pool, and its condition DisruptionPolicyValid
				_, err := f.Pools.Reconcile(t.Context(), named("apps"))
				f.check(t, err)
				p := f.pool(t)
				got, _ := p.StatusConditions().Find(karpv1.ConditionDisruptionPolicyValid)
				return *p, string(got.Status) + ": " + got.Message
			}
			f.setBudgets(t, c.budget)
			if pool, text := reconcilePool(); !strings.HasPrefix(text, "False: ") || !strings.Contains(text, c.field) ||
				!pool.StatusConditions().IsReady() {
				t.Fatalf("the condition is %q, want %q in it; the pool is ready: %t", text, c.field, pool.StatusConditions().IsReady())
			}
			before := f.describe(t)
			for range 10 {
				f.round(t)
			}
			if f.describe(t) != before {
				t.Fatalf("a node, claim or pod has changed\n%s\n%s", f.describe(t), f.log)
			}
			f.addPendingPod(t, "more", "1900m", "1Gi")
			f.plan(t)
			if n := len(f.claims(t)); n != 3 {
				t.Fatalf("there are %d claims for one more pod, want 3\n%s", n, f.log)
			}
			f.reconcileClaims(t)
			f.join(t)
			f.reconcileClaims(t)
			f.replicas = 3 // from now on the rig expects three pods
			f.setBudgets(t, karpv1.Budget{Nodes: "100%"})
			if _, text := reconcilePool(); strings.Contains(text, "budgets") {
				t.Errorf("the budget is fixed, but the condition is %q", text)
			}
			f.converge(t)
			if got := f.typeCounts(); got != "2 t3.medium" {
				t.Errorf("remaining: %s, want 2 t3.medium\n%s", got, f.log)
			}
		})
	}
}
