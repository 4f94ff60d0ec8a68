package loop

import (
	"slices"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
)

// DefaultJoinTime is the result of MedianJoinTime while none of the claims has an initialized node.
const DefaultJoinTime = 90 * time.Second

// MedianJoinTime returns the median time from the creation of a NodeClaim to the initialization of its node. During
// that time, the user pays for both the old and the new nodes of a move.
func MedianJoinTime(claims []*karpv1.NodeClaim) time.Duration {
	var took []time.Duration
	for _, c := range claims {
		initialized, ok := c.StatusConditions().Find(karpv1.ConditionInitialized)
		if !ok || initialized.Status != "True" {
			continue
		}
		if d := initialized.LastTransitionTime.Sub(c.CreationTimestamp.Time); d > 0 { // different clocks can make d negative
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return DefaultJoinTime
	}
	return median(took)
}

// fitFactor is the initialization timeout of a replacement, as a multiple of the median in its pool.
const fitFactor = 2

// InitializationTimeout returns how long the replacements may take from registration to initialization. It is at least
// replacement.DefaultInitializationTimeout, and at least fitFactor times the median of the initialized claims in the
// pool of each replacement: nodes of some pools must install drivers first.
func InitializationTimeout(claims, replacements []*karpv1.NodeClaim) time.Duration {
	out := replacement.DefaultInitializationTimeout
	for _, r := range replacements {
		var took []time.Duration
		for _, c := range claims {
			conditions := c.StatusConditions()
			registered, _ := conditions.Find(karpv1.ConditionRegistered)
			initialized, _ := conditions.Find(karpv1.ConditionInitialized)
			if c.Labels[karpv1.LabelNodePool] == r.Labels[karpv1.LabelNodePool] && initialized.Status == "True" {
				took = append(took, initialized.LastTransitionTime.Sub(registered.LastTransitionTime.Time))
			}
		}
		if len(took) > 0 {
			out = max(out, fitFactor*median(took))
		}
	}
	return out
}

// median sorts the durations and returns the middle one.
func median(durations []time.Duration) time.Duration {
	slices.Sort(durations)
	return durations[len(durations)/2]
}
