package drift

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// matching returns a node that equals its desired state, and that state.
func matching() (Node, Desired) {
	offered, none := true, ""
	pool := Origin{Stamp: Stamp{"1", PoolVersion}, Parts: map[string]string{"labels": "a", "taints": "b"},
		Texts: map[string]string{"taints": "x:NoSchedule"}}
	class := Origin{Stamp: Stamp{"2", ClassVersion}, Parts: map[string]string{"userData": "c", FieldAuthority: "d"}}
	labels := requirements.Labels{"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "a",
		"karpenter.sh/capacity-type": "spot", "arch": "amd64"}
	n := Node{
		Claim: "apps-1", Labels: labels, Age: 2 * time.Hour, Pool: pool, Class: class, Image: "ami-1", Known: true,
		Groups: []string{"sg-1", "sg-2"}, Subnet: "subnet-1",
	}
	d := Desired{
		PoolName: "apps", ClassName: "default", Pool: pool, Class: class,
		Requirements: []requirements.Requirement{{Key: "arch", Operator: requirements.In, Values: []string{"amd64"}}},
		Offered:      &offered, Image: "ami-1", Groups: []string{"sg-2", "sg-1"}, Subnets: []string{"subnet-1", "subnet-2"}, Placement: &none,
		PastGroups: []string{"sg-1", "sg-2"},
	}
	return n, d
}

// TestJudge: changes of a matching node or its desired state result in a verdict. An unknown state is no drift.
func TestJudge(t *testing.T) {
	t.Parallel()
	notOffered := false
	placementGroup := "pg-1"
	for name, c := range map[string]struct {
		change      func(*Node, *Desired)
		want        Reason // of the first verdict; empty: no drift
		wantWords   []string
		wantOutside bool
	}{
		"no change": {change: func(*Node, *Desired) {}},
		"the pool's taints": {change: func(_ *Node, d *Desired) {
			d.Pool = Origin{Stamp: Stamp{"9", PoolVersion}, Parts: map[string]string{"labels": "a", "taints": "z"},
				Texts: map[string]string{"taints": "y:NoExecute"}}
		}, want: PoolDrifted, wantWords: []string{"NodePool apps", "taints: the node has x:NoSchedule, the current value is y:NoExecute"}},
		"the pool, unknown field": {change: func(n *Node, d *Desired) {
			n.Pool.Parts, d.Pool.Stamp.Hash = nil, "9"
		}, want: PoolDrifted, wantWords: []string{"hash 1, now 9"}},
		"hashes of another version": {change: func(n *Node, _ *Desired) { n.Pool.Stamp = Stamp{"9", "v2"} }},
		"no hash":                   {change: func(n *Node, _ *Desired) { n.Pool.Stamp, n.Class.Stamp = Stamp{}, Stamp{} }},
		"a requirement": {change: func(_ *Node, d *Desired) { d.Requirements[0].Values = []string{"arm64"} }, want: Requirements,
			wantWords: []string{"has the label arch=amd64", "arm64"}},
		"requirement on a missing label": {change: func(_ *Node, d *Desired) {
			d.Requirements = append(d.Requirements, requirements.Requirement{Key: "disk", Operator: requirements.Exists})
		}, want: Requirements, wantWords: []string{"has no label disk"}},
		"requirement that excludes a missing label": {change: func(_ *Node, d *Desired) {
			d.Requirements = append(d.Requirements, requirements.Requirement{Key: "disk", Operator: requirements.DoesNotExist})
		}},
		"a wider requirement": {change: func(_ *Node, d *Desired) { d.Requirements[0].Values = []string{"arm64", "amd64"} }},
		"invalid requirement": {change: func(_ *Node, d *Desired) { d.Requirements[0].Operator = "Is" }},
		"no offering": {change: func(_ *Node, d *Desired) { d.Offered = &notOffered }, want: TypeNotFound,
			wantWords: []string{"m5.large in a, spot"}, wantOutside: true},
		"no offering, young node":   {change: func(n *Node, d *Desired) { n.Age, d.Offered = 30*time.Minute, &notOffered }},
		"the offerings are unknown": {change: func(_ *Node, d *Desired) { d.Offered = nil }},
		"the user data": {change: func(_ *Node, d *Desired) {
			d.Class = Origin{Stamp: Stamp{"9", ClassVersion}, Parts: map[string]string{"userData": "z", FieldAuthority: "d"}}
		}, want: ClassDrift, wantWords: []string{"EC2NodeClass default", "userData has changed"}},
		"field outside of the hash": {change: func(_ *Node, d *Desired) {
			d.Class = Origin{Stamp: Stamp{"2", ClassVersion}, Parts: map[string]string{"userData": "c", FieldAuthority: "d", "kubelet": "e"}}
		}, want: ClassDrift, wantWords: []string{"kubelet has changed"}},
		"the cluster's CA": {change: func(_ *Node, d *Desired) {
			d.Class = Origin{Stamp: Stamp{"9", ClassVersion}, Parts: map[string]string{"userData": "c", FieldAuthority: "z"}}
		}, want: ClassDrift, wantWords: []string{"clusterCABundle has changed"}, wantOutside: true},
		"a newer image": {change: func(_ *Node, d *Desired) { d.Image = "ami-2" }, want: ImageDrift,
			wantWords: []string{"ami-1", "ami-2"}},
		"unknown image": {change: func(_ *Node, d *Desired) { d.Image = "" }},
		"added group": {change: func(_ *Node, d *Desired) { d.Groups = append(d.Groups, "sg-3") },
			want: GroupDrift, wantWords: []string{"it lacks sg-3"}},
		"removed group": {change: func(_ *Node, d *Desired) { d.Groups = d.Groups[:1] }, want: GroupDrift,
			wantWords: []string{"it has sg-1, which the class does not select"}},
		"group that the class never selected": {change: func(n *Node, _ *Desired) { n.Groups = append(n.Groups, "sg-9") },
			want: GroupDrift, wantWords: []string{"it has sg-9"}, wantOutside: true},
		"group added by a tag": {change: func(_ *Node, d *Desired) {
			d.Groups, d.Outside = append(d.Groups, "sg-3"), map[string]bool{FieldGroups: true}
		}, want: GroupDrift, wantOutside: true},
		"unknown groups":     {change: func(_ *Node, d *Desired) { d.Groups = nil }},
		"instance not known": {change: func(n *Node, _ *Desired) { n.Known, n.Groups, n.Subnet = false, nil, "" }},
		"another subnet": {change: func(n *Node, _ *Desired) { n.Subnet = "subnet-9" }, want: SubnetDrift,
			wantWords: []string{"is in subnet-9", "subnet-1, subnet-2"}},
		"another reservation": {change: func(n *Node, d *Desired) {
			n.Reservation, d.Reservations = "cr-1", []string{"cr-2"}
		}, want: ReservationDrift, wantWords: []string{"cr-1"}},
		"another placement": {change: func(_ *Node, d *Desired) { d.Placement = &placementGroup }, want: PlacementDrift,
			wantWords: []string{"none", "pg-1"}},
		"unknown placement":      {change: func(n *Node, d *Desired) { n.Placement, d.Placement = "pg-1", nil }},
		"pool drift comes first": {change: func(_ *Node, d *Desired) { d.Pool.Stamp.Hash, d.Image = "9", "ami-2" }, want: PoolDrifted},
	} {
		n, d := matching()
		c.change(&n, &d)
		got, drifts := First(Judge(n, d))
		if got.Reason != c.want || drifts != (c.want != "") || got.Outside != c.wantOutside {
			t.Errorf("%s: %+v, want the reason %q, outside: %t", name, got, c.want, c.wantOutside)
		}
		for _, word := range c.wantWords {
			if !strings.Contains(got.Message, word) {
				t.Errorf("%s: %q lacks %q", name, got.Message, word)
			}
		}
	}
}

// TestIgnoredFields: a verdict with only ignored fields does not count. The next verdict counts instead.
func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ignored []string
		want    Reason
	}{
		"none":                {nil, ClassDrift},
		"one of two":          {[]string{"userData"}, ClassDrift},
		"both":                {[]string{"userData", "tags"}, ImageDrift},
		"both, and the image": {[]string{"userData", "tags", "amiSelectorTerms"}, ""},
		"suffix of a field":   {[]string{"Data", "tags"}, ClassDrift},
		"another field":       {[]string{"role"}, ClassDrift},
	} {
		n, d := matching()
		d.Class = Origin{Stamp: Stamp{"9", ClassVersion}, Parts: map[string]string{"userData": "z", FieldAuthority: "d", "tags": "t"}}
		d.Image, d.Ignored = "ami-2", c.ignored
		if got, _ := First(Judge(n, d)); got.Reason != c.want {
			t.Errorf("%s: the reason is %q, want %q", name, got.Reason, c.want)
		}
	}
}

// TestReasonsAreOrdered: a node that differs in everything has all verdicts, in the order of Reasons, each about a
// known field.
func TestReasonsAreOrdered(t *testing.T) {
	t.Parallel()
	n, d := matching()
	notOffered, placementGroup := false, "pg-1"
	d.Pool.Stamp.Hash, d.Class.Stamp.Hash = "9", "9"
	d.Class.Parts, d.Pool.Parts = map[string]string{"role": "r"}, map[string]string{"expireAfter": "r"}
	d.Requirements[0].Values, d.Offered, d.Image = []string{"arm64"}, &notOffered, "ami-2"
	d.Groups, d.Subnets = []string{"sg-7"}, []string{"subnet-7"}
	n.Reservation, d.Placement = "cr-1", &placementGroup
	var got []Reason
	for _, v := range Judge(n, d) {
		got = append(got, v.Reason)
		for _, f := range v.Fields {
			if !slices.Contains(Fields(), f) {
				t.Errorf("%s has field %s, which Fields lacks", v.Reason, f)
			}
		}
	}
	if !slices.Equal(got, Reasons()) {
		t.Errorf("verdicts %v, want %v", got, Reasons())
	}
}

func TestFieldOf(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		// known
		"tags": "tags", "spec.tags": "tags", "taints": "taints", "spec.template.spec.taints": "taints", "spec.template.metadata.labels": "labels",
		"instanceType": FieldType, "clusterCABundle": FieldAuthority, "spec.amiSelectorTerms": FieldImages,
		// unknown
		"": "", "spec.": "", "Tags": "", "ags": "", ".tags": "", "template.spec.tags": "", "spec.taints": "", "spec.template.spec.tags": "",
		"spec.template.spec.labels": "", "spec.instanceType": "", "tags ": "", "spec.spec.tags": "", "ipPrefixCount": "",
	} {
		if got, known := FieldOf(word); got != want || known != (want != "") {
			t.Errorf("FieldOf(%q) is %q, %t; want %q", word, got, known, want)
		}
	}
	for _, f := range Fields() {
		if got, known := FieldOf(f); got != f || !known {
			t.Errorf("FieldOf(%q) is %q, %t; want the same name, and true", f, got, known)
		}
	}
	if all := Fields(); !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("Fields returns unsorted or duplicate names: %v", all)
	}
}

func TestPartsText(t *testing.T) {
	t.Parallel()
	parts := map[string]string{"b": "2", "a": "1"}
	if got := PartsText(parts); got != "1 a=1 b=2" {
		t.Errorf("PartsText returns %q, want 1 a=1 b=2", got)
	}
	if got := PartsOf(PartsText(parts)); len(changedParts(parts, got)) > 0 {
		t.Errorf("PartsOf returns %v, want the parts given to PartsText", got)
	}
	for _, text := range []string{"", "0 a=1", "1 a"} {
		if got := PartsOf(text); got != nil {
			t.Errorf("PartsOf(%q) is %v, want nil", text, got)
		}
	}
}

// TestUnknown: a reason is unknown if AWS has not returned its data, unless the user ignores its field.
func TestUnknown(t *testing.T) {
	t.Parallel()
	offered, none := true, ""
	known := Desired{Offered: &offered, Image: "ami-1", Groups: []string{"sg-1"}, Subnets: []string{"subnet-1"}, Placement: &none}
	for name, c := range map[string]struct {
		node    Node
		desired Desired
		want    []Reason
	}{
		"everything known": {Node{Known: true}, known, nil},
		"nothing known": {Node{}, Desired{},
			[]Reason{TypeNotFound, ImageDrift, GroupDrift, SubnetDrift, ReservationDrift, PlacementDrift}},
		"instance unknown": {Node{}, known, []Reason{GroupDrift, SubnetDrift, ReservationDrift}},
		"all reasons ignored": {Node{Known: true},
			Desired{Groups: known.Groups, Subnets: known.Subnets, Placement: &none, Ignored: []string{FieldImages, FieldType}}, nil},
	} {
		if got := Unknown(c.node, c.desired); !slices.Equal(got, c.want) {
			t.Errorf("%s: unknown are %v, want %v", name, got, c.want)
		}
	}
}
