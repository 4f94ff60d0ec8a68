package nodestate

import (
	"context"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// PodLoss is a claim that the controller deleted, the reason as metrics name it, and the number of pods that it displaces.
type PodLoss struct {
	Claim  *karpv1.NodeClaim
	Reason string
	Pods   int
}

// Count updates the metrics.
func (l PodLoss) Count(m *metrics.Metrics) {
	labels := []string{l.Reason, l.Claim.Labels[karpv1.LabelNodePool], l.Claim.Labels[karpv1.LabelCapacityType], "", terminationMode(l.Claim)}
	m.Disrupted.WithLabelValues(labels...).Inc()
	m.Displaced.WithLabelValues(labels...).Add(float64(l.Pods))
}

// Displaced counts the pods that must leave with the claim's Node. An error counts as 0: the number is only for a graph.
func Displaced(ctx context.Context, cluster loop.NodeReader, claim *karpv1.NodeClaim, now time.Time) int {
	if claim.Status.NodeName == "" {
		return 0
	}
	pods, err := cluster.PodsOn(ctx, claim.Status.NodeName)
	if err != nil {
		return 0
	}
	n := 0
	for _, pod := range pods {
		if p := DrainPod(pod); p.MustLeave(now) && !p.Daemon {
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
