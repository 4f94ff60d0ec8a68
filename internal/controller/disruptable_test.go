package controller

import (
	"strings"
	"testing"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
)

// TestDisruptableConditionIsKeptCurrent: a cause that prevents the disruption of a node for at least MinCauseAge is
// written to the claim's condition Disruptable, counted and reported by an event. When another cause takes its place,
// the condition changes.
func TestDisruptableConditionIsKeptCurrent(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 4, "1500m", "400m", "t3.medium")
	f.setBudgets(t, karpv1.Budget{Nodes: "0"})
	f.runDisruption(t)
	if c, ok := f.claims(t)[0].StatusConditions().Find(karpv1.ConditionDisruptable); ok {
		t.Errorf("a new cause is already written: %+v", c)
	}
	for range 3 {
		f.ahead += disruptor.MinCauseAge
		f.runDisruption(t)
	}
	blocked := 0
	for _, claim := range f.claims(t) {
		if c, ok := claim.StatusConditions().Find(karpv1.ConditionDisruptable); ok && c.Reason == "Budget" &&
			c.Status == "False" && strings.Contains(c.Message, "as the budget allows (0)") {
			blocked++
		}
	}
	if blocked == 0 {
		t.Fatalf("no claim has the condition Disruptable=False with reason Budget: %+v\n%s", f.claims(t)[0].Status.Conditions, f.log)
	}
	if got := metricCount(t, f.Moves.Metrics.Staying, "Budget"); got != blocked {
		t.Errorf("%d nodes are counted, but %d claims have the condition", got, blocked)
	}
	if f.events.find("NodeClaim/DisruptionBlocked", "as the budget allows") == "" {
		t.Errorf("no event reports that the budget blocks the disruption: %v", f.events.emitted)
	}
	f.changePool(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmpty })
	for range 3 {
		f.ahead += disruptor.MinCauseAge
		f.runDisruption(t)
	}
	for _, claim := range f.claims(t) {
		if c, _ := claim.StatusConditions().Find(karpv1.ConditionDisruptable); c.Reason != "WhenEmpty" {
			t.Errorf("the policy allows only empty nodes to be disrupted, but %s has %+v", claim.Name, c)
		}
	}
	if f.events.find("NodeClaim/Unconsolidatable", "allows only empty nodes") == "" {
		t.Errorf("no event reports that only empty nodes may be disrupted: %v", f.events.emitted)
	}
}
