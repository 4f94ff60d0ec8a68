package provisioner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Explain describes a refusal in two sentences: the nearest obstacle with its code in metrics and logs, and a fix.
// The cause comes first, so that a truncated event loses the fix and not the cause.
func Explain(r packing.Refusal) string {
	if len(r.Reasons) == 0 {
		return strings.TrimSuffix("No place for the pod. "+r.Hint, ". ")
	}
	nearest := r.Reasons[0]
	cause := fmt.Sprintf("No place for the pod (%s): %s", nearest.Code, obstacle(nearest))
	// A hint that only repeats the cause is omitted.
	if r.Hint == "" || nearest.Code == packing.PoolUnusable && strings.Contains(r.Hint, afterColon(nearest.Detail)) {
		return cause
	}
	return cause + ". " + strings.ToUpper(r.Hint[:1]) + r.Hint[1:]
}

func obstacle(r packing.Reason) string {
	pool, rest, _ := strings.Cut(r.Detail, ": ") // if the detail begins with a pool
	switch r.Code {
	case packing.NoPool:
		return "there is no NodePool"
	case packing.PoolUnusable:
		return "NodePool " + pool + " cannot be used: " + rest
	case packing.PoolEmpty:
		return "the requirements of NodePool " + pool + " match no instance type: " + rest
	case packing.TaintUntolerated:
		return "the pod does not tolerate the taint " + r.Detail
	case packing.LabelMissing:
		return "no NodePool has nodes with the label " + r.Detail
	case packing.LabelConflict:
		return "the pod and the NodePool differ in the label " + r.Detail
	case packing.TypeMismatch:
		return "no offering has the value of " + r.Detail + " that the pod asks for"
	case packing.TooSmall:
		return "no instance type has enough room: " + r.Detail
	case packing.HostPortTaken:
		return "the host port " + r.Detail + " is taken on every node"
	case packing.NoCapacity:
		return "EC2 has no capacity for any offering that fits"
	case packing.ReservationFull:
		return "every instance of capacity reservation " + r.Detail + " is in use"
	case packing.LimitReached:
		return "NodePool " + pool + " has reached its limit of " + rest
	case packing.MinValues:
		return "minValues is not reached, " + r.Detail
	case packing.TopologySpread, packing.PodAffinity, packing.PodAntiAffinity:
		return "the pod's affinity and spread rules allow no value of " + r.Detail
	case packing.EffortSpent:
		return cmp.Or(r.Detail, "the plan reached its limit of work before it placed the pod")
	default:
		return r.Detail
	}
}

// afterColon returns the text after the first colon, which is the cause if the detail begins with a name; without a
// colon, all of the detail.
func afterColon(detail string) string {
	if _, rest, ok := strings.Cut(detail, ": "); ok {
		return rest
	}
	return detail
}

// RefusalSummary counts refusals by their first reason. It lists the five most frequent: "TypeMismatch
// kubernetes.io/arch: 12 pods; …".
func RefusalSummary(refusals []packing.Refusal) string {
	counts := map[string]int{}
	for _, r := range refusals {
		text := "no reason"
		if len(r.Reasons) > 0 {
			text = strings.TrimSpace(string(r.Reasons[0].Code) + " " + r.Reasons[0].Detail)
		}
		counts[text]++
	}
	texts := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(texts, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	const shown = 5
	if len(texts) > shown {
		texts = texts[:shown]
	}
	for i, text := range texts {
		texts[i] = text + ": " + loop.Count(counts[text], "pod")
	}
	return strings.Join(texts, "; ")
}
