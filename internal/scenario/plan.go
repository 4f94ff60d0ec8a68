package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// PlanText returns a plan in the text format of the plans that scenarios expect.
//
//	buy 2 x general: m5.large us-east-1a on-demand 0.096
//	  or m5a.large; us-east-1b; spot
//	  with team=a
//	  relaxed node.kubernetes.io/instance-type: 2 of 5 values
//	  web-1 web-3
//	  web-2 web-4
//	  cpu=2 mem=4Gi pods=2
//	place api-1 on node-a
//	refuse db-1: 4 TypeMismatch kubernetes.io/arch, 2 TooSmall cpu
//	  hint: …
//	total 0.192, bound 0.18, 5 pods in 3 classes
//
// The entry of a planned NodeClaim begins with its NodePool and its cheapest offering: instance type, zone, capacity
// type, price per hour and, if there is one, the ID of the capacity reservation. "or" lists the other instance types,
// zones and capacity types that the NodeClaim allows. "with" is one of its labels, and "taint" one of its taints.
// "relaxed" is a label with fewer values than minValues requires. The last line of the entry has the requests of the
// pods of one NodeClaim and of its DaemonSet pods. Adjacent planned NodeClaims that differ only in the names of their
// pods share one entry, with a line of pods for each. In "refuse", the number before a cause is the number of
// offerings that it rules out, or 1 if the cause is not about offerings.
func PlanText(p packing.Plan) string {
	var w writer
	for i := 0; i < len(p.PlannedNodes); {
		end := i + 1
		for end < len(p.PlannedNodes) && plannedNodeText(p.PlannedNodes[end]) == plannedNodeText(p.PlannedNodes[i]) &&
			p.PlannedNodes[end].Requests.Equal(p.PlannedNodes[i].Requests) {
			end++
		}
		w.plannedNodes(p.PlannedNodes[i:end])
		i = end
	}
	for i := 0; i < len(p.Placements); {
		end, pods := i, []string(nil)
		for ; end < len(p.Placements) && p.Placements[end].Node == p.Placements[i].Node; end++ {
			pods = append(pods, p.Placements[end].Pod)
		}
		w.printf("place %s on %s\n", podsText(pods), p.Placements[i].Node)
		i = end
	}
	for i := 0; i < len(p.Refusals); {
		end, pods := i, []string(nil)
		for ; end < len(p.Refusals) && refusalText(p.Refusals[end]) == refusalText(p.Refusals[i]); end++ {
			pods = append(pods, p.Refusals[end].Pod)
		}
		w.printf("refuse %s: %s", podsText(pods), refusalText(p.Refusals[i]))
		i = end
	}
	w.printf("total %s, bound %s, %d pods in %d classes\n", p.Price, p.LowerBound, p.Pods, p.Classes)
	return w.String()
}

// plannedNodes writes the entry of planned NodeClaims that differ only in the names of their pods.
func (w *writer) plannedNodes(nodes []packing.PlannedNode) {
	w.printf("buy ")
	if len(nodes) > 1 {
		w.printf("%d x ", len(nodes))
	}
	w.printf("%s", plannedNodeText(nodes[0]))
	for _, n := range nodes {
		w.printf("  %s\n", podsText(n.Pods))
	}
	w.printf(" %s\n", amountsText("", nodes[0].Requests))
}

// plannedNodeText returns the text of a planned NodeClaim without its pods.
func plannedNodeText(planned packing.PlannedNode) string {
	var w writer
	first := planned.Offerings[0]
	w.printf("%s: %s %s %s %s", planned.Pool, first.InstanceType, first.Zone, first.CapacityType, first.Price)
	if first.Reservation != "" {
		w.printf(" %s", first.Reservation)
	}
	w.printf("\n")
	var types, zones, capacityTypes []string
	for _, o := range planned.Offerings[1:] {
		types = addOther(types, o.InstanceType, first.InstanceType)
		zones = addOther(zones, o.Zone, first.Zone)
		capacityTypes = addOther(capacityTypes, o.CapacityType, first.CapacityType)
	}
	if len(planned.Offerings) > 1 {
		w.printf("  or %s; %s; %s\n", typesText(types), strings.Join(zones, " "), strings.Join(capacityTypes, " "))
	}
	for _, key := range slices.Sorted(maps.Keys(planned.Labels)) {
		if key != "karpenter.sh/nodepool" && key != "karpenter.k8s.aws/ec2nodeclass" {
			w.printf("  with %s=%s\n", key, planned.Labels[key])
		}
	}
	for _, t := range planned.Taints {
		w.printf("  taint %s\n", t)
	}
	for _, r := range planned.Relaxed {
		w.printf("  relaxed %s: %d of %d values\n", r.Key, r.Have, r.Asked)
	}
	return w.String()
}

// addOther appends the value, unless the list has it or it is the value of the first offering.
func addOther(to []string, value, first string) []string {
	if value == first || slices.Contains(to, value) {
		return to
	}
	return append(to, value)
}

// typesText returns the names of the first four types, and the number of further types.
func typesText(types []string) string {
	const maxTypes = 4
	if len(types) <= maxTypes {
		return strings.Join(types, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(types[:maxTypes], " "), len(types)-maxTypes)
}

// refusalText returns the reasons why a pod is not scheduled, and the hint on a line of its own.
func refusalText(r packing.Refusal) string {
	var parts []string
	for _, reason := range r.Reasons {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s %s", reason.Count, reason.Code, reason.Detail)))
	}
	text := strings.Join(parts, ", ") + "\n"
	if r.Hint != "" {
		text += "  hint: " + r.Hint + "\n"
	}
	return text
}

// podsText returns the names of the pods, with consecutive numbers shortened: "web-1..3" is web-1 web-2 web-3.
func podsText(pods []string) string {
	type numbered struct {
		stem string // "web-"
		n    int    // -1 if the name ends in no number
	}
	all := make([]numbered, len(pods))
	for i, pod := range pods {
		pod = strings.TrimPrefix(pod, defaultNamespace+"/")
		all[i] = numbered{stem: pod, n: -1}
		if at := strings.LastIndexByte(pod, '-'); at > 0 {
			if n, err := strconv.Atoi(pod[at+1:]); err == nil && strconv.Itoa(n) == pod[at+1:] { // without leading zeros
				all[i] = numbered{stem: pod[:at+1], n: n}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b numbered) int {
		if a.stem != b.stem {
			return strings.Compare(a.stem, b.stem)
		}
		return a.n - b.n
	})
	var out []string
	for i := 0; i < len(all); {
		end := i + 1
		for end < len(all) && all[end].stem == all[i].stem && all[i].n >= 0 && all[end].n == all[end-1].n+1 {
			end++
		}
		text := all[i].stem
		if all[i].n >= 0 {
			text += strconv.Itoa(all[i].n)
		}
		if end > i+1 {
			text += ".." + strconv.Itoa(all[end-1].n)
		}
		out = append(out, text)
		i = end
	}
	return strings.Join(out, " ")
}
