package loop

import (
	"slices"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
)

// AssumedJoin replaces the measured time from NodeClaim to initialized node while no node has been initialized.
const AssumedJoin = 90 * time.Second

// UsualJoin returns the median time from NodeClaim to initialized node. During that time, the user pays for both the
// old and the new nodes of a move.
func UsualJoin(claims []*karpv1.NodeClaim) time.Duration {
	var took []time.Duration
	for _, c := range claims {
		initialized, ok := c.StatusConditions().Find(karpv1.ConditionInitialized)
		if !ok || initialized.Status != "True" {
			continue
		}
		if d := initialized.LastTransitionTime.Sub(c.CreationTimestamp.Time); d > 0 { // the two times are from different clocks
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return AssumedJoin
	}
	return median(took)
}

// slowBy is the factor on the median initialization time within which a replacement must be initialized.
const slowBy = 2

// FitWithin returns how long the replacements coming may take from registration to initialization. It is at least
// replacement.FitWithin, and at least slowBy times the median of the nodes in the replacements' pools, which may have
// to install drivers first.
func FitWithin(claims, coming []*karpv1.NodeClaim) time.Duration {
	out := replacement.FitWithin
	for _, one := range coming {
		var took []time.Duration
		for _, c := range claims {
			conditions := c.StatusConditions()
			joined, _ := conditions.Find(karpv1.ConditionRegistered)
			initialized, _ := conditions.Find(karpv1.ConditionInitialized)
			if c.Labels[karpv1.LabelNodePool] == one.Labels[karpv1.LabelNodePool] && initialized.Status == "True" {
				took = append(took, initialized.LastTransitionTime.Sub(joined.LastTransitionTime.Time))
			}
		}
		if len(took) > 0 {
			out = max(out, slowBy*median(took))
		}
	}
	return out
}

// median sorts the durations and returns the middle one.
func median(some []time.Duration) time.Duration {
	slices.Sort(some)
	return some[len(some)/2]
}
