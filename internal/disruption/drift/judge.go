package drift

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Stamp is a hash with the version of the way in which it was made. Without one of the two it says nothing.
type Stamp struct{ Hash, Version string }

// Differs reports whether the hashes say that something has changed: both are there, made in the same way, and differ.
func (s Stamp) Differs(other Stamp) bool {
	known := s.Hash != "" && s.Version != "" && other.Hash != "" && other.Version != ""
	return known && s.Version == other.Version && s.Hash != other.Hash
}

// Made is what a node was made from, as it is written on it.
type Made struct {
	Stamp Stamp
	// Parts are short hashes of fields by name (Parts); nil where they were not noted, as on nodes that Karpenter made.
	Parts map[string]string
	// Texts are values of fields by name, where there is something to read.
	Texts map[string]string
}

// Node is a node of a pool that was bought.
type Node struct {
	Claim  string // name of its NodeClaim
	Labels requirements.Labels
	Age    time.Duration // since the claim was made
	Pool   Made
	Class  Made
	Image  string   // id
	Known  bool     // EC2 has told what the fields below say
	Groups []string // security groups, ids
	Subnet string   // id
	// Reservation is the capacity reservation that the machine runs in, and Placement the placement group; empty for none.
	Reservation, Placement string
}

// Wish is what a pool and its node class ask for now, of nodes that are like one.
type Wish struct {
	PoolName, ClassName string
	Pool, Class         Made
	Requirements        []requirements.Requirement // of the pool
	// Offered: a node with these labels can be bought, if only there were capacity. nil: nobody can say now.
	Offered *bool
	Image   string // for a node of its type, id; empty: nobody can say now
	// Groups, Subnets and Reservations are ids of what the class selects. Without groups, or subnets, nobody can say now.
	Groups, Subnets, Reservations []string
	GroupsBefore                  []string // what the class has found in its time; nil: nobody remembers
	// Placement is the placement group; nil: nobody can say now.
	Placement *string

	Ignored []string        // fields whose change is none, by name (Fields)
	Outside map[string]bool // fields of selectors that find others than before, though nobody has changed them (Outside)
}

// Verdict is one thing that a node has otherwise than it is asked for.
type Verdict struct {
	Reason  Reason
	Fields  []string // that have changed, sorted; none where nobody knows which
	Message string   // one sentence: the field, what the node has, what is asked for
	Ignored bool     // the user does not mind
	Outside bool     // nobody changed an object of the cluster: something in AWS changed
}

// youngType is how old a node is before it matters that EC2 does not offer what it is: new types show late.
const youngType = time.Hour

// Judge returns all that a node has otherwise than it is asked for, in the order of Reasons; nothing for a node that is as it
// should be. What nobody can say now is not held against a node.
func Judge(n Node, w Wish) []Verdict {
	var out []Verdict
	for _, judge := range []func(Node, Wish) (Verdict, bool){
		judgePool, judgeRequirements, judgeType, judgeClass, judgeImage, judgeGroups, judgeSubnet, judgeReservation, judgePlacement,
	} {
		v, drifted := judge(n, w)
		if !drifted {
			continue
		}
		v.Ignored = len(v.Fields) > 0 && !slices.ContainsFunc(v.Fields, func(f string) bool { return !slices.Contains(w.Ignored, f) })
		out = append(out, v)
	}
	return out
}

// Untold are the reasons for which nobody can say now whether the node has what it is asked for: that it drifts by one of them is neither true nor
// untrue. Those that the user does not mind are not among them.
func Untold(n Node, w Wish) []Reason {
	var out []Reason
	for _, r := range []struct {
		reason  Reason
		field   string
		isKnown bool
	}{
		{TypeNotFound, FieldType, w.Offered != nil},
		{ImageDrift, FieldImages, w.Image != ""},
		{GroupDrift, FieldGroups, n.Known && len(w.Groups) > 0},
		{SubnetDrift, FieldSubnets, n.Known && len(w.Subnets) > 0},
		{ReservationDrift, FieldReservations, n.Known},
		{PlacementDrift, FieldPlacement, w.Placement != nil},
	} {
		if !r.isKnown && !slices.Contains(w.Ignored, r.field) {
			out = append(out, r.reason)
		}
	}
	return out
}

// First returns the verdict that counts: the first that the user minds.
func First(all []Verdict) (Verdict, bool) {
	for _, v := range all {
		if !v.Ignored {
			return v, true
		}
	}
	return Verdict{}, false
}

func judgePool(n Node, w Wish) (Verdict, bool) {
	fields := changed(n.Pool, w.Pool)
	if !n.Pool.Stamp.Differs(w.Pool.Stamp) {
		return Verdict{}, false
	}
	return Verdict{Reason: PoolDrifted, Fields: fields, Message: changeText("spec.template of NodePool "+w.PoolName, fields, n.Pool, w.Pool)}, true
}

func judgeRequirements(n Node, w Wish) (Verdict, bool) {
	needs, wrong := requirements.All(w.Requirements...)
	if wrong != nil {
		return Verdict{}, false // the pool is at fault, and says so
	}
	key := needs.Refusal(n.Labels)
	if key == "" {
		return Verdict{}, false
	}
	has := "has no label " + key
	if value, ok := n.Labels[key]; ok {
		has = "has the label " + key + "=" + value
	}
	return Verdict{Reason: Requirements, Fields: []string{FieldRequirements}, Message: fmt.Sprintf(
		"the node %s, and spec.template.spec.requirements of NodePool %s asks for %s %s", has, w.PoolName, key, needs[key])}, true
}

func judgeType(n Node, w Wish) (Verdict, bool) {
	if w.Offered == nil || *w.Offered || n.Age < youngType {
		return Verdict{}, false
	}
	what := fmt.Sprintf("%s in %s, %s", n.Labels["node.kubernetes.io/instance-type"], n.Labels["topology.kubernetes.io/zone"], n.Labels["karpenter.sh/capacity-type"])
	return Verdict{Reason: TypeNotFound, Fields: []string{FieldType}, Outside: true, Message: fmt.Sprintf(
		"the node is %s, which cannot be bought any more with EC2NodeClass %s", what, w.ClassName)}, true
}

func judgeClass(n Node, w Wish) (Verdict, bool) {
	fields := changed(n.Class, w.Class)
	if n.Class.Stamp.Version != w.Class.Stamp.Version || !n.Class.Stamp.Differs(w.Class.Stamp) && len(fields) == 0 {
		return Verdict{}, false
	}
	v := Verdict{Reason: ClassDrift, Fields: fields, Message: changeText("spec of EC2NodeClass "+w.ClassName, fields, n.Class, w.Class)}
	v.Outside = slices.Equal(fields, []string{FieldAuthority})
	return v, true
}

// changed are the fields that differ, as far as the node knows what it was made from.
func changed(was, is Made) []string {
	if was.Parts == nil || is.Parts == nil {
		return nil
	}
	return changedParts(was.Parts, is.Parts)
}

// changeText says what has changed: with both values where there is something to read, else by name.
func changeText(where string, fields []string, was, is Made) string {
	if len(fields) == 0 {
		return where + " is not what the node was made from (hash " + was.Stamp.Hash + ", now " + is.Stamp.Hash + ")"
	}
	var texts []string
	for _, f := range fields {
		old, new := was.Texts[f], is.Texts[f]
		if old == new {
			texts = append(texts, f+" has changed")
			continue
		}
		texts = append(texts, fmt.Sprintf("%s: the node has %s, asked for is %s", f, orNone(old), orNone(new)))
	}
	return where + ": " + strings.Join(texts, "; ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
