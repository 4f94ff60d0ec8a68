package drift

import (
	"fmt"
	"slices"
	"strings"
)

func judgeImage(n Node, d Desired) (Verdict, bool) {
	if d.Image == "" || n.Image == "" || n.Image == d.Image {
		return Verdict{}, false
	}
	return Verdict{Reason: ImageDrift, Fields: []string{FieldImages}, Outside: d.Outside[FieldImages], Message: fmt.Sprintf(
		"the node runs image %s, and EC2NodeClass %s now selects %s for it", n.Image, d.ClassName, d.Image)}, true
}

// judgeGroups compares the security groups. A group that the node lacks is newly selected by the class, and may belong
// to another cluster with the same tags. An extra group of the node is no longer selected, or another user or program
// attached it.
func judgeGroups(n Node, d Desired) (Verdict, bool) {
	lacks, extra := without(d.Groups, n.Groups), without(n.Groups, d.Groups)
	if !n.Known || len(d.Groups) == 0 || len(lacks) == 0 && len(extra) == 0 {
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
		Reason:  GroupDrift,
		Fields:  []string{FieldGroups},
		Outside: d.Outside[FieldGroups] || d.PastGroups != nil && len(without(extra, d.PastGroups)) > 0,
		Message: fmt.Sprintf("the instance's security groups are not those of spec.%s of EC2NodeClass %s: %s", FieldGroups,
			d.ClassName, strings.Join(texts, "; ")),
	}, true
}

func judgeSubnet(n Node, d Desired) (Verdict, bool) {
	if !n.Known || n.Subnet == "" || len(d.Subnets) == 0 || slices.Contains(d.Subnets, n.Subnet) {
		return Verdict{}, false
	}
	return Verdict{Reason: SubnetDrift, Fields: []string{FieldSubnets}, Outside: d.Outside[FieldSubnets], Message: fmt.Sprintf(
		"the instance is in %s, and spec.%s of EC2NodeClass %s finds %s", n.Subnet, FieldSubnets, d.ClassName,
		strings.Join(sorted(d.Subnets), ", "))}, true
}

func judgeReservation(n Node, d Desired) (Verdict, bool) {
	if !n.Known || n.Reservation == "" || slices.Contains(d.Reservations, n.Reservation) {
		return Verdict{}, false
	}
	return Verdict{Reason: ReservationDrift, Fields: []string{FieldReservations}, Outside: d.Outside[FieldReservations], Message: fmt.Sprintf(
		"the instance runs in capacity reservation %s, which spec.%s of EC2NodeClass %s does not find", n.Reservation,
		FieldReservations, d.ClassName)}, true
}

func judgePlacement(n Node, d Desired) (Verdict, bool) {
	if d.Placement == nil || n.Placement == *d.Placement {
		return Verdict{}, false
	}
	return Verdict{Reason: PlacementDrift, Fields: []string{FieldPlacement}, Outside: d.Outside[FieldPlacement], Message: fmt.Sprintf(
		"the instance is in placement group %s, and spec.%s of EC2NodeClass %s finds %s", orNone(n.Placement),
		FieldPlacement, d.ClassName, orNone(*d.Placement))}, true
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
