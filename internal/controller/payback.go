package controller

import (
	"slices"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
)

// assumedJoin is how long a node takes to be ready for pods where none has been seen to.
const assumedJoin = 90 * time.Second

// usualJoin is how long nodes take to be ready for pods, from the NodeClaim on: the median of those that are. So long a move's nodes are
// paid for twice.
func usualJoin(claims []*karpv1.NodeClaim) time.Duration {
	var took []time.Duration
	for _, c := range claims {
		is, ok := c.StatusConditions().Find(karpv1.ConditionInitialized)
		if !ok || is.Status != "True" {
			continue
		}
		if d := is.LastTransitionTime.Sub(c.CreationTimestamp.Time); d > 0 { // the two are of different clocks
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return assumedJoin
	}
	return median(took)
}

// slowBy is how many times as long as usual a node may take that comes in the place of others.
const slowBy = 2

// fitWithin is how long nodes of the pools of those that come may take from joining to being fit for pods: at least move.FitWithin, and
// twice what the pool's nodes usually take, whose drivers may have to be installed first.
func fitWithin(claims, coming []*karpv1.NodeClaim) time.Duration {
	out := replacement.FitWithin
	for _, one := range coming {
		var took []time.Duration
		for _, c := range claims {
			conditions := c.StatusConditions()
			joined, _ := conditions.Find(karpv1.ConditionRegistered)
			if is, _ := conditions.Find(karpv1.ConditionInitialized); c.Labels[karpv1.LabelNodePool] == one.Labels[karpv1.LabelNodePool] && is.Status == "True" {
				took = append(took, is.LastTransitionTime.Sub(joined.LastTransitionTime.Time))
			}
		}
		if len(took) > 0 {
			out = max(out, slowBy*median(took))
		}
	}
	return out
}

// median is the one in the middle of some; it sorts them.
func median(some []time.Duration) time.Duration {
	slices.Sort(some)
	return some[len(some)/2]
}
