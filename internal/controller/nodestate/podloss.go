package nodestate

import (
	"context"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// PodLoss describes the pods that a deleted claim displaces.
type PodLoss struct {
	Claim  *karpv1.NodeClaim // the claim that the controller deleted
	Reason string            // why the claim was deleted, as a metric label
	Pods   int               // number of displaced pods
}

// Count adds the loss to the metrics.
func (l PodLoss) Count(m *metrics.Metrics) {
	// Karpenter's label consolidation_policy stays empty.
	labels := []string{l.Reason, l.Claim.Labels[karpv1.LabelNodePool], l.Claim.Labels[karpv1.LabelCapacityType], "", terminationMode(l.Claim)}
	m.Disrupted.WithLabelValues(labels...).Inc()
	m.Displaced.WithLabelValues(labels...).Add(float64(l.Pods))
}

// DisplacedPods returns how many pods must leave the claim's Node when the claim is deleted. After an error it returns
// 0, because the number is only for a metric.
func DisplacedPods(ctx context.Context, cluster loop.NodeReader, claim *karpv1.NodeClaim, now time.Time) int {
	if claim.Status.NodeName == "" {
		return 0
	}
	pods, err := cluster.PodsOn(ctx, claim.Status.NodeName)
	if err != nil {
		return 0
	}
	n := 0
	for _, pod := range pods {
		if p := DrainPodOf(pod); p.MustLeave(now) && !p.Daemon {
			n++
		}
	}
	return n
}

// terminationMode returns the metric label for the termination grace period of the claim: graceful if it has none.
func terminationMode(claim *karpv1.NodeClaim) string {
	switch grace := claim.Spec.TerminationGracePeriod; {
	case grace == nil:
		return "graceful"
	case grace.Duration <= 0:
		return "forceful"
	}
	return "eventual"
}
