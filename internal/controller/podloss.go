package controller

import (
	"context"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// loss is a claim that the controller deleted, the reason as metrics name it, and the number of pods that it displaces.
type loss struct {
	claim  *karpv1.NodeClaim
	reason string
	pods   int
}

// count updates the metrics.
func (l loss) count(m *metrics.Metrics) {
	labels := []string{l.reason, l.claim.Labels[karpv1.LabelNodePool], l.claim.Labels[karpv1.LabelCapacityType], "", terminationMode(l.claim)}
	m.Disrupted.WithLabelValues(labels...).Inc()
	m.Displaced.WithLabelValues(labels...).Add(float64(l.pods))
}

// displaced counts the pods that must leave with the claim's Node. An error counts as 0: the number is only for a graph.
func displaced(ctx context.Context, cluster nodeReader, claim *karpv1.NodeClaim, now time.Time) int {
	if claim.Status.NodeName == "" {
		return 0
	}
	pods, err := cluster.PodsOn(ctx, claim.Status.NodeName)
	if err != nil {
		return 0
	}
	n := 0
	for _, pod := range pods {
		if p := drainPod(pod); p.MustLeave(now) && !p.Daemon {
			n++
		}
	}
	return n
}

// terminationMode returns how long the pods of the claim may take to leave, as metrics name it.
func terminationMode(claim *karpv1.NodeClaim) string {
	switch grace := claim.Spec.TerminationGracePeriod; {
	case grace == nil:
		return "graceful"
	case grace.Duration <= 0:
		return "forceful"
	}
	return "eventual"
}
