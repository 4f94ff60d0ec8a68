package requirements

import "testing"

func TestValues(t *testing.T) {
	t.Parallel()
	of := func(op Operator, values ...string) Values {
		v, ok := ValuesOf(op, values...)
		if !ok {
			t.Fatalf("ValuesOf(%s, %q) is invalid", op, values)
		}
		return v
	}
	for name, c := range map[string]struct {
		a, b   Values
		want   string
		absent bool
	}{
		"two sets":                       {of(In, "a", "b"), of(In, "b", "c"), "In [b]", false},
		"set less exclusions":            {of(In, "a", "b"), of(NotIn, "b"), "In [a]", false},
		"nothing in common":              {of(In, "a"), of(In, "b"), "nothing", false},
		"exclusions add up":              {of(NotIn, "b"), of(NotIn, "a", "b"), "NotIn [a b]", true},
		"excluded, and present":          {of(NotIn, "b"), of(Exists), "NotIn [b] Exists", false},
		"absent and excluded":            {of(DoesNotExist), of(NotIn, "b"), "DoesNotExist", true},
		"absent and present":             {of(DoesNotExist), of(Exists), "nothing", false},
		"bounds":                         {of(Gt, "3"), of(Lt, "10"), "Gte 4 Lte 9", false},
		"bounds that cross":              {of(Gte, "5"), of(Lte, "4"), "nothing", false},
		"bounds and set":                 {of(Gte, "5"), of(In, "4", "5", "x"), "In [5]", false},
		"bounds and exclusions together": {of(Gte, "5"), of(NotIn, "7"), "NotIn [7] Gte 5 Exists", false},
	} {
		for _, got := range []Values{c.a.Intersect(c.b), c.b.Intersect(c.a)} {
			if got.String() != c.want || got.Absent != c.absent {
				t.Errorf("%s: Intersect = %q absent=%t, want %q absent=%t", name, got, got.Absent, c.want, c.absent)
			}
		}
	}
	for _, op := range []Operator{"Bogus", Gt, Lte} {
		if v, ok := ValuesOf(op, "x"); ok || !v.IsEmpty() {
			t.Errorf("ValuesOf(%s, x) = %v, %t; want no values, invalid", op, v, ok)
		}
	}
	if v := of(Gt, "9223372036854775807"); !v.IsEmpty() {
		t.Errorf("Gt the largest integer accepts %v, want nothing", v)
	}
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	r, invalid := All(
		Requirement{Key: "arch", Operator: In, Values: []string{"amd64", "arm64"}},
		Requirement{Key: "arch", Operator: NotIn, Values: []string{"arm64"}},
		Requirement{Key: "gpu", Operator: DoesNotExist},
		Requirement{Key: "cpu", Operator: Gt, Values: []string{"2"}},
	)
	if invalid != nil {
		t.Fatalf("%+v is invalid", invalid)
	}
	if got, want := r.String(), "arch In [amd64], cpu Gte 3, gpu DoesNotExist"; got != want {
		t.Errorf("All = %q, want %q", got, want)
	}
	for key, labels := range map[string]Labels{ // "": the labels satisfy all of r
		"":     {"arch": "amd64", "cpu": "4"},
		"arch": {"arch": "arm64", "cpu": "4"},
		"cpu":  {"arch": "amd64"},
		"gpu":  {"arch": "amd64", "cpu": "4", "gpu": "t4"},
	} {
		if got := r.Unsatisfied(labels); got != key {
			t.Errorf("Unsatisfied(%v) = %q, want %q", labels, got, key)
		}
	}
	if got := r.Conflict(Exactly(Labels{"arch": "arm64", "zone": "a", "gpu": "x"})); got != "arch" {
		t.Errorf("Conflict = %q, want arch, which is before gpu; only one of both constrains zone", got)
	}
	if _, invalid := All(Requirement{Key: "x", Operator: "Nearly"}); invalid == nil || invalid.Key != "x" {
		t.Errorf("the invalid requirement is %v, want x", invalid)
	}
}

func TestTolerations(t *testing.T) {
	t.Parallel()
	taint := Taint{Key: "team", Value: "7", Effect: NoSchedule}
	for name, c := range map[string]struct {
		toleration Toleration
		want       bool
	}{
		"equal":              {Toleration{Key: "team", Value: "7"}, true},
		"other value":        {Toleration{Key: "team", Value: "8"}, false},
		"exists":             {Toleration{Key: "team", Operator: "Exists"}, true},
		"exists without key": {Toleration{Operator: "Exists"}, true},
		"other effect":       {Toleration{Key: "team", Operator: "Exists", Effect: NoExecute}, false},
		"less than":          {Toleration{Key: "team", Operator: "Lt", Value: "8"}, true},
		"not greater than":   {Toleration{Key: "team", Operator: "Gt", Value: "8"}, false},
		"unknown operator":   {Toleration{Key: "team", Operator: "Like", Value: "7"}, false},
		"equal without key":  {Toleration{Value: "7"}, false},
	} {
		if got := c.toleration.Tolerates(taint); got != c.want {
			t.Errorf("%s: Tolerates = %t, want %t", name, got, c.want)
		}
	}
	soft := Taint{Key: "soft", Effect: PreferNoSchedule}
	if got, ok := Untolerated([]Taint{soft, taint}, nil); !ok || got != taint {
		t.Errorf("Untolerated = %v, %t; want the hard taint", got, ok)
	}
}

// TestTransientTaints: IsTransient recognizes, by the key alone, a taint that a component removes when the node is
// ready.
func TestTransientTaints(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"node.cilium.io/agent-not-ready": true, "ebs.csi.aws.com/agent-not-ready": true, "efs.csi.aws.com/agent-not-ready": true,
		"node.cloudprovider.kubernetes.io/uninitialized": true, "cni.istio.io/not-ready": true, "example.com/driver_not_ready": true,
		"karpenter.sh/unregistered": true, "startup-taint.cluster-autoscaler.kubernetes.io/gpu": true, "example.com/driver.NotReady": true,
		"nvidia.com/gpu": false, "dedicated": false, "team": false, "CriticalAddonsOnly": false, "example.com/ready": false,
	} {
		if got := (Taint{Key: key, Effect: NoSchedule}).IsTransient(); got != want {
			t.Errorf("%s: IsTransient = %v, want %v", key, got, want)
		}
	}
}
