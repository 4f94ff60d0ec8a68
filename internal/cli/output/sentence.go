package output

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Sentence explains why a pod is unschedulable, without the pod's name and without a full stop: "of 1,402 offerings:
// 812 have the wrong architecture, 410 are too small (cpu), EC2 is short of 180". Events, conditions and the command
// line use the same sentence.
func Sentence(r packing.Refusal) string {
	var counted, uncounted []string
	offerings := 0
	for _, reason := range r.Reasons {
		if text := uncountedText(reason); text != "" {
			uncounted = append(uncounted, text)
			continue
		}
		offerings += reason.Count
		counted = append(counted, countedText(reason))
	}
	if len(counted) > 0 {
		text := fmt.Sprintf("of %s: %s", Count(offerings, "offering"), strings.Join(counted, ", "))
		uncounted = append([]string{text}, uncounted...)
	}
	if len(uncounted) == 0 {
		return "no reason is known"
	}
	return strings.Join(uncounted, "; ")
}

// uncountedText returns the text of a reason that is not about a number of offerings; empty for other reasons.
func uncountedText(r packing.Reason) string {
	switch r.Code {
	case packing.NoPool:
		return "there is no NodePool"
	case packing.PoolUnusable:
		return "no node may be launched for NodePool " + r.Detail
	case packing.PoolEmpty:
		return "the requirements of NodePool " + r.Detail + " match no offering"
	case packing.Unplannable:
		return "it cannot be planned for: " + r.Detail
	case packing.EffortSpent:
		if r.Detail != "" { // the pod was left out of this plan, so no offering was compared with it
			return "a later plan places it: " + r.Detail
		}
	default:
	}
	return ""
}

// countedText returns the text of a reason with the number of offerings that it rules out.
func countedText(r packing.Reason) string {
	n := number(r.Count)
	switch r.Code {
	case packing.TaintUntolerated:
		return fmt.Sprintf("%s have the taint %s, which it does not tolerate", n, r.Detail)
	case packing.LabelMissing:
		return fmt.Sprintf("%s lack the label it asks for (%s)", n, r.Detail)
	case packing.LabelConflict:
		return fmt.Sprintf("%s are of NodePools that have another %s", n, r.Detail)
	case packing.TypeMismatch:
		return fmt.Sprintf("%s have the wrong %s", n, labelName(r.Detail))
	case packing.TooSmall:
		return fmt.Sprintf("%s are too small (%s)", n, r.Detail)
	case packing.HostPortTaken:
		return fmt.Sprintf("on %s a DaemonSet takes port %s", n, r.Detail)
	case packing.NoCapacity:
		return fmt.Sprintf("EC2 is short of %s", n)
	case packing.LimitReached:
		pool, limit, _ := strings.Cut(r.Detail, ": ")
		return fmt.Sprintf("%s exceed the %s limit of NodePool %s", n, limit, pool)
	case packing.MinValues:
		key, values, _ := strings.Cut(r.Detail, ": ")
		return fmt.Sprintf("%s leave %s values of %s that minValues asks for", n, values, labelName(key))
	case packing.ReservationFull:
		return fmt.Sprintf("%s are of capacity reservation %s, which is used up", n, r.Detail)
	case packing.TopologySpread:
		return fmt.Sprintf("on %s its spread over %s would be too uneven", n, labelName(r.Detail))
	case packing.PodAffinity:
		return fmt.Sprintf("%s would be in no %s with a pod that it must be near", n, labelName(r.Detail))
	case packing.PodAntiAffinity:
		return fmt.Sprintf("%s would be in a %s with a pod that it must not be near", n, labelName(r.Detail))
	case packing.EffortSpent:
		return fmt.Sprintf("%s were not considered: the plan reached its limit of work", n)
	case packing.NoPool, packing.PoolUnusable, packing.PoolEmpty, packing.Unplannable: // see uncountedText
	}
	return fmt.Sprintf("%s: %s %s", n, r.Code, r.Detail)
}

func labelName(key string) string {
	switch key {
	case catalog.LabelArch:
		return "architecture"
	case catalog.LabelOS:
		return "operating system"
	case catalog.LabelZone, catalog.LabelZoneID:
		return "zone"
	case catalog.LabelRegion:
		return "region"
	case catalog.LabelCapacityType:
		return "capacity type"
	case catalog.LabelInstanceType:
		return "instance type"
	case catalog.LabelFamily:
		return "instance family"
	case "kubernetes.io/hostname":
		return "node"
	}
	return key
}

// Count returns n with the noun, in the plural unless n is 1: "1 pod", "2,000 pods", "0 classes".
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return number(n) + " " + noun + "s"
}

// number formats 1402 as 1,402.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
