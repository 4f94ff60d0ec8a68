package drift

import (
	"fmt"
	"slices"
	"strings"
)

func judgeImage(n Node, w Desired) (Verdict, bool) {
	if w.Image == "" || n.Image == "" || n.Image == w.Image {
		return Verdict{}, false
	}
	return Verdict{Reason: ImageDrift, Fields: []string{FieldImages}, Outside: w.Outside[FieldImages], Message: fmt.Sprintf(
		"the node runs image %s, and EC2NodeClass %s now selects %s for it", n.Image, w.ClassName, w.Image)}, true
}

// judgeGroups compares the security groups. A group that the node lacks is newly selected by the class, and may belong
// to another cluster with the same tags. An extra group of the node is no longer selected, or another user or program
// attached it.
func judgeGroups(n Node, w Desired) (Verdict, bool) {
	lacks, extra := without(w.Groups, n.Groups), without(n.Groups, w.Groups)
	if !n.Known || len(w.Groups) == 0 || len(lacks) == 0 && len(extra) == 0 {
		return Verdict{}, false
	}
	var texts []string
	if len(lacks) > 0 {
		texts = append(texts, "it lacks "+strings.Join(lacks, ", ")+", which the class now selects in addition")
	}
	if len(extra) > 0 {
		texts = append(texts, "it has "+strings.Join(extra, ", ")+", which the class does not select")
	}
	return Verdict{
		Reason: GroupDrift,
		Fields: []string{FieldGroups},
		// Another user or program attached a group that the class never selected.
		Outside: w.Outside[FieldGroups] || w.PastGroups != nil && len(without(extra, w.PastGroups)) > 0,
		Message: fmt.Sprintf("the instance's security groups are not those of spec.%s of EC2NodeClass %s: %s", FieldGroups,
			w.ClassName, strings.Join(texts, "; ")),
	}, true
}

func judgeSubnet(n Node, w Desired) (Verdict, bool) {
	if !n.Known || n.Subnet == "" || len(w.Subnets) == 0 || slices.Contains(w.Subnets, n.Subnet) {
		return Verdict{}, false
	}
	return Verdict{Reason: SubnetDrift, Fields: []string{FieldSubnets}, Outside: w.Outside[FieldSubnets], Message: fmt.Sprintf(
		"the instance is in %s, and spec.%s of EC2NodeClass %s finds %s", n.Subnet, FieldSubnets, w.ClassName,
		strings.Join(sorted(w.Subnets), ", "))}, true
}

func judgeReservation(n Node, w Desired) (Verdict, bool) {
	if !n.Known || n.Reservation == "" || slices.Contains(w.Reservations, n.Reservation) {
		return Verdict{}, false
	}
	return Verdict{Reason: ReservationDrift, Fields: []string{FieldReservations}, Outside: w.Outside[FieldReservations], Message: fmt.Sprintf(
		"the instance runs in capacity reservation %s, which spec.%s of EC2NodeClass %s does not find", n.Reservation,
		FieldReservations, w.ClassName)}, true
}

func judgePlacement(n Node, w Desired) (Verdict, bool) {
	if w.Placement == nil || n.Placement == *w.Placement {
		return Verdict{}, false
	}
	return Verdict{Reason: PlacementDrift, Fields: []string{FieldPlacement}, Outside: w.Outside[FieldPlacement], Message: fmt.Sprintf(
		"the instance is in placement group %s, and spec.%s of EC2NodeClass %s finds %s", orNone(n.Placement),
		FieldPlacement, w.ClassName, orNone(*w.Placement))}, true
}

// without returns the elements of all that are not in others, sorted.
func without(all, others []string) []string {
	var out []string
	for _, element := range all {
		if !slices.Contains(others, element) {
			out = append(out, element)
		}
	}
	return sorted(out)
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
