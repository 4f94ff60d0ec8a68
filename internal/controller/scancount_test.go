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

// TestScansAreMeasured: metrics contain the duration of each scan for nodes to disrupt, by reason, and the number of
// evaluated moves, by the pool's policy.
func TestScansAreMeasured(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.runDisruption(t)
	m := f.Moves.Metrics
	for _, labels := range [][]string{{"empty", "empty"}, {"drifted", ""}, {"underutilized", "multi"}} {
		if metricCount(t, m.Evaluation, labels...) == 0 {
			t.Errorf("no scan has the labels %q", labels)
		}
	}
	const policy = "WhenEmptyOrUnderutilized"
	if metricCount(t, m.Weighed, "approved", "apps", policy) != 1 || metricCount(t, m.Score, "approved", "apps", policy) != 1 ||
		metricCount(t, m.Weighed, "rejected") != 0 {
		t.Errorf("two nodes are replaced with one, but %d moves were approved and %d rejected, want 1 and 0",
			metricCount(t, m.Weighed, "approved"), metricCount(t, m.Weighed, "rejected"))
	}
	if n := metricCount(t, m.Taken, "apps", "Underutilized"); n != 0 {
		t.Errorf("before any move, %d nodes count against budgets, want none", n)
	}
	f.runDisruption(t)
	if n := metricCount(t, m.Taken, "apps", "Underutilized"); n != 2 {
		t.Errorf("%d nodes count against budgets, want both candidates", n)
	}
}

// TestRejectedMovesAreCounted: a move that saves less than the pool requires is counted as rejected, with its score.
func TestRejectedMovesAreCounted(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 2, "1500m", "1300m", "t3.medium", "t3.large")
	f.changePool(t, func(p *karpv1.NodePool) {
		p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateBalanced
		p.Annotations = map[string]string{karpv1.AnnotationMinimumSaving: "$100"}
	})
	f.replicas = 1 // one pod is deleted
	pods := f.pods(t)
	f.check(t, f.api.Delete(t.Context(), &pods[0]))
	// The annotation keeps the other node, which is empty. So a move of the remaining pod there would save its node.
	f.keepNode(t, pods[0].Spec.NodeName)
	f.runDisruption(t)
	m := f.Moves.Metrics
	if n := metricCount(t, m.Weighed, "rejected", "apps", "Balanced"); n != 1 || metricCount(t, m.Weighed, "approved") != 0 {
		t.Errorf("%d moves were rejected and %d approved, want 1 and 0\n%s", n, metricCount(t, m.Weighed, "approved"), f.tail())
	}
	if n := metricCount(t, m.Score, "rejected", "apps", "Balanced"); n != 1 {
		t.Errorf("%d scores of rejected moves, want one", n)
	}
}

func (f *replicaRig) keepNode(t *testing.T, name string) {
	t.Helper()
	node := &corev1.Node{}
	f.check(t, f.api.Get(t.Context(), client.ObjectKey{Name: name}, node))
	node.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
	f.check(t, f.api.Update(t.Context(), node))
}

// TestInvalidDisruptionsAreCounted: if revalidation rejects a move, the nodes of the move are counted as invalid. So is
// an empty node to which a pod is bound between two scans.
func TestInvalidDisruptionsAreCounted(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.Moves.Lock.Enter()
	s, err := f.Moves.ReadInput(t.Context(), f.now())
	f.Moves.Lock.Leave()
	f.check(t, err)
	nodes, _ := disruption.Candidates(s.In, disruption.Underutilized)
	found := consolidation.Find(f.Moves.ConsolidationInput(s, nodes))
	if len(found.Moves) != 1 || len(found.Moves[0].Nodes) != 2 {
		t.Fatalf("the found moves are %+v, want one of both nodes", found.Moves)
	}
	for _, p := range f.pods(t) {
		p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
		f.check(t, f.api.Update(t.Context(), &p))
	}
	f.check(t, f.Moves.StartConfirmed(t.Context(), found.Moves))
	m := f.Moves.Metrics
	if n := metricCount(t, m.Invalid, "multi"); n != 2 || metricCount(t, m.Moves.Started) != 0 {
		t.Errorf("%d nodes of rejected moves are counted, want 2, or a move is counted as started", n)
	}

	pods := f.pods(t)
	f.check(t, f.api.Delete(t.Context(), &pods[0]))
	f.runDisruption(t)
	if n := metricCount(t, m.Invalid, "empty"); n != 0 {
		t.Fatalf("%d empty nodes are counted as invalid after one scan, want none", n)
	}
	bound := pods[0]
	bound.ResourceVersion = ""
	f.check(t, f.api.Create(t.Context(), &bound))
	f.runDisruption(t)
	if n := metricCount(t, m.Invalid, "empty"); n != 1 {
		t.Errorf("%d empty nodes are counted as invalid after a pod was bound, want 1\n%s", n, f.tail())
	}
}

// TestTimeoutsStartAtZero: the counters of scans that timed out exist before any scan, with the value 0, so that alerts
// work.
func TestTimeoutsStartAtZero(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := r.Moves.Start(ctx); err != nil {
		t.Fatal(err)
	}
	series := make(chan prometheus.Metric, 4)
	r.Moves.Metrics.Timeouts.Collect(series)
	if len(series) != 2 || metricCount(t, r.Moves.Metrics.Timeouts) != 0 {
		t.Errorf("%d series with %d timeouts, want the series single and multi with 0", len(series), metricCount(t, r.Moves.Metrics.Timeouts))
	}
}
