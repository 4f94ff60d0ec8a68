package drift

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Stamp is a hash with the version of its algorithm. The stamp is unknown if the hash or the version is empty.
type Stamp struct {
	// Hash is the hash in hexadecimal or decimal digits, as Karpenter writes it.
	Hash    string
	Version string
}

// Differs reports whether both hashes are known, have the same version, and differ.
func (s Stamp) Differs(other Stamp) bool {
	known := s.Hash != "" && s.Version != "" && other.Hash != "" && other.Version != ""
	return known && s.Version == other.Version && s.Hash != other.Hash
}

// Origin is the recorded origin of a node: the fields of its NodePool or node class that it was made from.
type Origin struct {
	// Stamp is the hash of all fields.
	Stamp Stamp
	// Parts are short hashes of fields by name; nil if they were not recorded, as on Karpenter's nodes.
	Parts map[string]string
	// Texts are the values of fields by name, for fields with a readable value.
	Texts map[string]string
}

// Node is a node of a pool.
type Node struct {
	Claim  string              // name of its NodeClaim
	Labels requirements.Labels // labels of the NodeClaim or the Node
	Age    time.Duration       // time since its creation
	Pool   Origin              // fields of the NodePool
	Class  Origin              // fields of the EC2NodeClass
	Image  string              // AMI ID
	Known  bool                // whether EC2 has returned the fields below
	Groups []string            // security group IDs
	Subnet string              // subnet ID
	// Reservation is the instance's capacity reservation, Placement its placement group; empty for none.
	Reservation, Placement string
}

// Desired holds the current requirements of a node's pool and node class.
type Desired struct {
	// PoolName and ClassName are the names of the NodePool and the EC2NodeClass.
	PoolName, ClassName string
	// Pool and Class are the origin of a node that would be launched now.
	Pool, Class  Origin
	Requirements []requirements.Requirement // requirements of the pool
	// Offered reports whether EC2 offers an instance with the node's labels, regardless of capacity. Nil: unknown.
	Offered *bool
	Image   string // AMI ID for a node of this type; empty: unknown
	// Groups, Subnets and Reservations are the IDs that the class selects. Empty groups or subnets: unknown.
	Groups, Subnets, Reservations []string
	PastGroups                    []string // all IDs that the class has ever selected; nil: unknown
	// Placement is the placement group; nil: unknown.
	Placement *string

	Ignored []string        // names of fields, as Fields returns them, whose changes do not count
	Outside map[string]bool // fields whose selectors select other IDs than before, without a change by the user (Selections.Outside)
}

// Verdict is one difference between a node and its desired state.
type Verdict struct {
	Reason  Reason   // which kind of difference
	Fields  []string // changed fields, sorted; empty if unknown
	Message string   // one sentence: the field, the node's value, the desired value
	Ignored bool     // the user ignores changes of all these fields
	Outside bool     // caused by a change in AWS, not by a change of an object in the cluster
}

// minAgeForTypeDrift is the minimum age of a node for TypeNotFound. EC2 lists the offerings of new instance types late.
const minAgeForTypeDrift = time.Hour

// Judge returns all differences between a node and its desired state, in the order of Reasons. An unknown part of the
// state is no difference.
func Judge(n Node, d Desired) []Verdict {
	var out []Verdict
	for _, judge := range []func(Node, Desired) (Verdict, bool){
		judgePool, judgeRequirements, judgeType, judgeClass, judgeImage, judgeGroups, judgeSubnet, judgeReservation, judgePlacement,
	} {
		v, drifted := judge(n, d)
		if !drifted {
			continue
		}
		v.Ignored = len(v.Fields) > 0 && !slices.ContainsFunc(v.Fields, func(f string) bool { return !slices.Contains(d.Ignored, f) })
		out = append(out, v)
	}
	return out
}

// Unknown returns the reasons for which it is unknown whether the node drifts, except those that the user ignores.
func Unknown(n Node, d Desired) []Reason {
	var out []Reason
	for _, r := range []struct {
		reason  Reason
		field   string
		isKnown bool
	}{
		{TypeNotFound, FieldType, d.Offered != nil},
		{ImageDrift, FieldImages, d.Image != ""},
		{GroupDrift, FieldGroups, n.Known && len(d.Groups) > 0},
		{SubnetDrift, FieldSubnets, n.Known && len(d.Subnets) > 0},
		{ReservationDrift, FieldReservations, n.Known},
		{PlacementDrift, FieldPlacement, d.Placement != nil},
	} {
		if !r.isKnown && !slices.Contains(d.Ignored, r.field) {
			out = append(out, r.reason)
		}
	}
	return out
}

// First returns the verdict that counts: the first that the user does not ignore.
func First(all []Verdict) (Verdict, bool) {
	for _, v := range all {
		if !v.Ignored {
			return v, true
		}
	}
	return Verdict{}, false
}

func judgePool(n Node, d Desired) (Verdict, bool) {
	fields := changedFields(n.Pool, d.Pool)
	if !n.Pool.Stamp.Differs(d.Pool.Stamp) {
		return Verdict{}, false
	}
	return Verdict{
		Reason:  PoolDrifted,
		Fields:  fields,
		Message: changeText("spec.template of NodePool "+d.PoolName, fields, n.Pool, d.Pool),
	}, true
}

func judgeRequirements(n Node, d Desired) (Verdict, bool) {
	needs, invalid := requirements.All(d.Requirements...)
	if invalid != nil {
		return Verdict{}, false // the pool is invalid, and its condition reports that
	}
	key := needs.Unsatisfied(n.Labels)
	if key == "" {
		return Verdict{}, false
	}
	has := "has no label " + key
	if value, ok := n.Labels[key]; ok {
		has = "has the label " + key + "=" + value
	}
	return Verdict{Reason: Requirements, Fields: []string{FieldRequirements}, Message: fmt.Sprintf(
		"the node %s, and spec.template.spec.requirements of NodePool %s requires %s %s", has, d.PoolName, key, needs[key])}, true
}

func judgeType(n Node, d Desired) (Verdict, bool) {
	if d.Offered == nil || *d.Offered || n.Age < minAgeForTypeDrift {
		return Verdict{}, false
	}
	what := fmt.Sprintf("%s in %s, %s", n.Labels["node.kubernetes.io/instance-type"],
		n.Labels["topology.kubernetes.io/zone"], n.Labels["karpenter.sh/capacity-type"])
	return Verdict{Reason: TypeNotFound, Fields: []string{FieldType}, Outside: true, Message: fmt.Sprintf(
		"the node is %s, which can no longer be launched with EC2NodeClass %s", what, d.ClassName)}, true
}

// judgeClass compares the hashes of the spec of the node class, and its recorded fields. A field may differ although
// the hashes are equal: FieldAuthority is no field of the spec.
func judgeClass(n Node, d Desired) (Verdict, bool) {
	fields := changedFields(n.Class, d.Class)
	if n.Class.Stamp.Version != d.Class.Stamp.Version || !n.Class.Stamp.Differs(d.Class.Stamp) && len(fields) == 0 {
		return Verdict{}, false
	}
	v := Verdict{Reason: ClassDrift, Fields: fields, Message: changeText("spec of EC2NodeClass "+d.ClassName, fields, n.Class, d.Class)}
	v.Outside = slices.Equal(fields, []string{FieldAuthority})
	return v, true
}

// changedFields returns the names of the fields that differ; nil if the fields are not recorded in both.
func changedFields(was, current Origin) []string {
	if was.Parts == nil || current.Parts == nil {
		return nil
	}
	return changedParts(was.Parts, current.Parts)
}

// changeText describes the change: with both values if they are readable, else by name.
func changeText(where string, fields []string, was, current Origin) string {
	if len(fields) == 0 {
		return where + " is not what the node was made from (hash " + was.Stamp.Hash + ", now " + current.Stamp.Hash + ")"
	}
	var texts []string
	for _, f := range fields {
		before, after := was.Texts[f], current.Texts[f]
		if before == after {
			texts = append(texts, f+" has changed")
			continue
		}
		texts = append(texts, fmt.Sprintf("%s: the node has %s, the current value is %s", f, orNone(before), orNone(after)))
	}
	return where + ": " + strings.Join(texts, "; ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
