package controller

import (
	"strings"
	"testing"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
)

// TestWhyNodesStayIsKeptCurrent: a lasting cause that keeps a node is written to its claim, counted and reported once.
// When the cause ends the condition is removed.
func TestWhyNodesStayIsKeptCurrent(t *testing.T) {
	t.Parallel()
	f := newPark(t, 4, "1500m", "400m", "t3.medium")
	f.budgets(t, karpv1.Budget{Nodes: "0"})
	f.lead(t)
	if c, ok := f.claims(t)[0].StatusConditions().Find(karpv1.ConditionDisruptable); ok {
		t.Errorf("a cause that has just begun is already written: %+v", c)
	}
	for range 3 {
		f.ahead += disruptor.StaySettles
		f.lead(t)
	}
	kept := 0
	for _, claim := range f.claims(t) {
		if c, ok := claim.StatusConditions().Find(karpv1.ConditionDisruptable); ok && c.Reason == "Budget" &&
			c.Status == "False" && strings.Contains(c.Message, "as the budget allows (0)") {
			kept++
		}
	}
	if kept == 0 {
		t.Fatalf("no claim has a condition why its node stays: %+v\n%s", f.claims(t)[0].Status.Conditions, f.log)
	}
	if got := counted(t, f.Moves.Metrics.Staying, "Budget"); got != kept {
		t.Errorf("%d nodes are counted, but %d claims have the condition", got, kept)
	}
	if f.events.has("NodeClaim/DisruptionBlocked", "as the budget allows") == "" {
		t.Errorf("no event was emitted: %v", f.events.told)
	}
	f.change(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmpty })
	for range 3 {
		f.ahead += disruptor.StaySettles
		f.lead(t)
	}
	for _, claim := range f.claims(t) {
		if c, _ := claim.StatusConditions().Find(karpv1.ConditionDisruptable); c.Reason != "WhenEmpty" {
			t.Errorf("the policy allows only empty nodes to be disrupted, but %s has %+v", claim.Name, c)
		}
	}
	if f.events.has("NodeClaim/Unconsolidatable", "allows only empty nodes") == "" {
		t.Errorf("no event was emitted: %v", f.events.told)
	}
}
