package controller

import (
	"slices"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
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
	slices.Sort(took)
	return took[len(took)/2]
}
