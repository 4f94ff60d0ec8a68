package controller

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
)

// TestLooksAreCounted: each scan for nodes to disrupt is timed by its reason, and the moves that it evaluates are
// counted by the pool's policy.
func TestLooksAreCounted(t *testing.T) {
	t.Parallel()
	f := newPark(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.lead(t)
	m := f.Moves.Metrics
	for _, labels := range [][]string{{"empty", "empty"}, {"drifted", ""}, {"underutilized", "multi"}} {
		if counted(t, m.Evaluation, labels...) == 0 {
			t.Errorf("no scan was timed with %q", labels)
		}
	}
	const policy = "WhenEmptyOrUnderutilized"
	if counted(t, m.Weighed, "approved", "apps", policy) != 1 || counted(t, m.Score, "approved", "apps", policy) != 1 ||
		counted(t, m.Weighed, "rejected") != 0 {
		t.Errorf("two nodes are replaced with one, but %d moves were approved, %d rejected", counted(t, m.Weighed, "approved"),
			counted(t, m.Weighed, "rejected"))
	}
	if n := counted(t, m.Taken, "apps", "Underutilized"); n != 0 {
		t.Errorf("before any move, %d nodes count against budgets", n)
	}
	f.lead(t)
	if n := counted(t, m.Taken, "apps", "Underutilized"); n != 2 {
		t.Errorf("%d nodes count against budgets, want both candidates", n)
	}
}

// TestRejectedMovesAreCounted: a move that Balanced rejects is worth it to a pool that asks for less.
func TestRejectedMovesAreCounted(t *testing.T) {
	t.Parallel()
	f := newPark(t, 2, "1500m", "1300m", "t3.medium", "t3.large")
	f.change(t, func(p *karpv1.NodePool) {
		p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateBalanced
		p.Annotations = map[string]string{karpv1.AnnotationMinimumSaving: "$100"}
	})
	f.wanted = 1 // one pod is deleted
	pods := f.pods(t)
	f.check(t, f.api.Delete(t.Context(), &pods[0]))
	// The pod of the other node would fit on its neighbour, which is empty and kept.
	f.keepNode(t, pods[0].Spec.NodeName)
	f.lead(t)
	m := f.Moves.Metrics
	if n := counted(t, m.Weighed, "rejected", "apps", "Balanced"); n != 1 || counted(t, m.Weighed, "approved") != 0 {
		t.Errorf("%d moves were rejected, %d approved, want one that was rejected\n%s", n, counted(t, m.Weighed, "approved"), f.tail())
	}
	if n := counted(t, m.Score, "rejected", "apps", "Balanced"); n != 1 {
		t.Errorf("%d scores of moves that were rejected, want one", n)
	}
}

// keepNode sets the annotation that keeps the Node.
func (f *park) keepNode(t *testing.T, name string) {
	t.Helper()
	node := &corev1.Node{}
	f.check(t, f.api.Get(t.Context(), client.ObjectKey{Name: name}, node))
	node.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
	f.check(t, f.api.Update(t.Context(), node))
}

// TestChangedMindsAreCounted: a move that revalidation does not confirm counts its nodes, and so does an empty node to which
// a pod was bound in between.
func TestChangedMindsAreCounted(t *testing.T) {
	t.Parallel()
	f := newPark(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.Moves.Gate.Enter()
	s, err := f.Moves.ReadInput(t.Context(), f.now())
	f.Moves.Gate.Leave()
	f.check(t, err)
	nodes, _ := disruption.Candidates(s.In, disruption.Underutilized)
	found := consolidation.Find(f.Moves.ConsolidationInput(s, nodes))
	if len(found.Moves) != 1 || len(found.Moves[0].Nodes) != 2 {
		t.Fatalf("found are %+v, want one move of both nodes", found.Moves)
	}
	for _, p := range f.pods(t) {
		p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
		f.check(t, f.api.Update(t.Context(), &p))
	}
	f.check(t, f.Moves.Choose(t.Context(), found.Moves))
	m := f.Moves.Metrics
	if n := counted(t, m.Invalid, "multi"); n != 2 || counted(t, m.Moves.Begun) != 0 {
		t.Errorf("%d nodes stay after the second scan, want both", n)
	}

	pods := f.pods(t)
	f.check(t, f.api.Delete(t.Context(), &pods[0]))
	f.lead(t)
	if n := counted(t, m.Invalid, "empty"); n != 0 {
		t.Fatalf("%d nodes stay after one scan", n)
	}
	back := pods[0]
	back.ResourceVersion = ""
	f.check(t, f.api.Create(t.Context(), &back))
	f.lead(t)
	if n := counted(t, m.Invalid, "empty"); n != 1 {
		t.Errorf("%d nodes stay because a pod came, want one\n%s", n, f.tail())
	}
}

// TestNoLookIsCutOff: the counter of scans that timed out exists, for alerts on it, and is 0.
func TestNoLookIsCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := r.Moves.Start(ctx); err != nil {
		t.Fatal(err)
	}
	series := make(chan prometheus.Metric, 4)
	r.Moves.Metrics.Timeouts.Collect(series)
	if len(series) != 2 || counted(t, r.Moves.Metrics.Timeouts) != 0 {
		t.Errorf("%d series with %d timeouts, want the series single and multi with 0", len(series), counted(t, r.Moves.Metrics.Timeouts))
	}
}
