package controller

import (
	"testing"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
)

// TestDecisionLabelsOfKarpenter: the labels of the decision metrics have the values that Karpenter's dashboards expect.
func TestDecisionLabelsOfKarpenter(t *testing.T) {
	t.Parallel()
	for want, mark := range map[[3]string]nodestate.MoveMark{ // decision, reason, consolidation type
		{"delete", "empty", "empty"}:           {Reason: disruption.Empty, Nodes: 1},
		{"replace", "drifted", ""}:             {Reason: disruption.Drifted, Nodes: 1, Claims: 1},
		{"delete", "drifted", ""}:              {Reason: disruption.Drifted, Nodes: 1},
		{"delete", "underutilized", "multi"}:   {Reason: disruption.Underutilized, Nodes: 2},
		{"replace", "underutilized", "multi"}:  {Reason: disruption.Underutilized, Nodes: 3, Claims: 2},
		{"replace", "underutilized", "single"}: {Reason: disruption.Underutilized, Nodes: 1, Claims: 1},
	} {
		if decision, reason, kind := mark.Decision(); want != [3]string{decision, reason, kind} {
			t.Errorf("the decision of %+v is %s, %s, %q; want %q", mark, decision, reason, kind, want)
		}
	}
}

// TestDecisionsAreCounted: a move is counted when it starts, and again when it is undone.
func TestDecisionsAreCounted(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.noJoin = true
	f.runDisruption(t)
	m := f.Moves.Metrics
	labels := []string{"replace", "underutilized", "multi"}
	if n := metricCount(t, m.Decisions, labels...); n != 1 {
		t.Errorf("%v moves were started, want one", n)
	}
	if n := metricCount(t, m.PoolDecisions, append([]string{"apps"}, labels...)...); n != 1 {
		t.Errorf("%v moves were started in the pool, want one", n)
	}
	if n := metricCount(t, m.Eligible, "underutilized"); n != 2 {
		t.Errorf("%v nodes are eligible, want both", n)
	}
	// The move of a paused pool is undone.
	f.changePool(t, func(p *karpv1.NodePool) { p.Annotations = map[string]string{karpv1.AnnotationPaused: "true"} })
	f.noJoin = false
	f.settle(t, 6)
	if n := metricCount(t, m.Moves.Failed, labels...); n != 1 {
		t.Errorf("%v moves were undone, want one\n%s", n, f.tail())
	}
}
