package controller

import (
	"testing"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
)

// TestDecisionsInKarpentersWords: the metric labels are those of Karpenter's dashboards.
func TestDecisionsInKarpentersWords(t *testing.T) {
	t.Parallel()
	for want, m := range map[[3]string]nodestate.MoveMark{
		{"delete", "empty", "empty"}:           {Reason: disruption.Empty, Nodes: 1},
		{"replace", "drifted", ""}:             {Reason: disruption.Drifted, Nodes: 1, Claims: 1},
		{"delete", "drifted", ""}:              {Reason: disruption.Drifted, Nodes: 1},
		{"delete", "underutilized", "multi"}:   {Reason: disruption.Underutilized, Nodes: 2},
		{"replace", "underutilized", "multi"}:  {Reason: disruption.Underutilized, Nodes: 3, Claims: 2},
		{"replace", "underutilized", "single"}: {Reason: disruption.Underutilized, Nodes: 1, Claims: 1},
	} {
		if decision, reason, kind := m.Decision(); want != [3]string{decision, reason, kind} {
			t.Errorf("%+v is %s, %s, %q; want %q", m, decision, reason, kind, want)
		}
	}
}

// TestDecisionsAreCounted: a move that is undone is counted, and so is a later one that completes.
func TestDecisionsAreCounted(t *testing.T) {
	t.Parallel()
	f := newPark(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.slow = true
	f.lead(t)
	m := f.Moves.Metrics
	labels := []string{"replace", "underutilized", "multi"}
	if n := counted(t, m.Decisions, labels...); n != 1 {
		t.Errorf("%v moves were started, want one", n)
	}
	if n := counted(t, m.PoolDecisions, append([]string{"apps"}, labels...)...); n != 1 {
		t.Errorf("%v moves were started in the pool, want one", n)
	}
	if n := counted(t, m.Eligible, "underutilized"); n != 2 {
		t.Errorf("%v nodes may go, want both", n)
	}
	f.change(t, func(p *karpv1.NodePool) { p.Annotations = map[string]string{karpv1.AnnotationPaused: "true"} })
	f.slow = false
	f.settle(t, 6)
	if n := counted(t, m.Moves.Failed, labels...); n != 1 {
		t.Errorf("%v moves were undone, want one\n%s", n, f.tail())
	}
}
