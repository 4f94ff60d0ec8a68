package drift

import (
	"maps"
	"slices"
	"strings"
)

// Reason is why a node differs from its desired state: the reason of a NodeClaim's condition Drifted. The values are
// Karpenter's.
type Reason string

// The reasons. The first that applies is reported.
const (
	PoolDrifted      Reason = "NodePoolDrifted"          // the NodePool's template has changed
	Requirements     Reason = "RequirementsDrifted"      // the NodePool's requirements no longer accept the node
	TypeNotFound     Reason = "InstanceTypeNotFound"     // EC2 no longer offers the node's instance type, zone and capacity type
	ClassDrift       Reason = "NodeClassDrift"           // the node class has changed
	ImageDrift       Reason = "AMIDrift"                 // another image is selected
	GroupDrift       Reason = "SecurityGroupDrift"       // the instance has other security groups than the class selects
	SubnetDrift      Reason = "SubnetDrift"              // the instance is in a subnet that is no longer selected
	ReservationDrift Reason = "CapacityReservationDrift" // the instance is in a capacity reservation that is no longer selected
	PlacementDrift   Reason = "PlacementGroupDrift"      // the instance is in another placement group
)

// Reasons returns all reasons, in order.
func Reasons() []Reason {
	return []Reason{PoolDrifted, Requirements, TypeNotFound, ClassDrift, ImageDrift, GroupDrift, SubnetDrift, ReservationDrift, PlacementDrift}
}

// changedParts returns, sorted, the names of the fields whose hashes differ in two results of Parts.
func changedParts(a, b map[string]string) []string {
	var out []string
	for name := range a {
		if a[name] != b[name] {
			out = append(out, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

const partsVersion = "1"

// PartsText formats the result of Parts as one line, for an annotation.
func PartsText(parts map[string]string) string {
	words := []string{partsVersion}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		words = append(words, name+"="+parts[name])
	}
	return strings.Join(words, " ")
}

// PartsOf parses the output of PartsText; nil for another version or an invalid text.
func PartsOf(text string) map[string]string {
	words := strings.Fields(text)
	if len(words) == 0 || words[0] != partsVersion {
		return nil
	}
	out := map[string]string{}
	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil
		}
		out[name] = value
	}
	return out
}
