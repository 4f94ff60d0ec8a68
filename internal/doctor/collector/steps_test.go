package collector

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// TestSteps: there is a step for each requirement on labels of instance types. The numbers of types in the test are
// lower bounds, because the table of types grows.
func TestSteps(t *testing.T) {
	t.Parallel()
	in := func(key string, values ...string) diagnosis.Requirement {
		return diagnosis.Requirement{Key: key, Operator: "In", Values: values}
	}
	p := diagnosis.Pool{Requirements: []diagnosis.Requirement{
		in("topology.kubernetes.io/zone", "us-east-1a"), in("team", "a"),
		in("karpenter.k8s.aws/instance-family", "m5", "t4g"), in("kubernetes.io/arch", "arm64"), in("karpenter.k8s.aws/instance-cpu", "96"),
	}}
	got := countTypesPerRequirement(p, "AL2023", "us-east-1")
	if len(got) != 3 || got[0].Name != "karpenter.k8s.aws/instance-family In [m5, t4g]" {
		t.Fatalf("steps: %+v, want one for each of the 3 requirements on types", got)
	}
	if got[0].Left["amd64"] < 8 || got[0].Left["arm64"] < 6 || got[1].Left["amd64"] != 0 ||
		got[1].Left["arm64"] != got[0].Left["arm64"] || len(got[2].Left) != 0 {
		t.Errorf("steps: %+v, want no amd64 types in step 2 and no types in step 3", got)
	}
	if got := countTypesPerRequirement(diagnosis.Pool{}, "", "us-east-1"); len(got) != 1 || got[0].Left["amd64"] < 100 || got[0].Left["arm64"] < 100 {
		t.Errorf("without requirements: %+v, want one step with all types", got)
	}
	if got := countTypesPerRequirement(p, "", "mars-north-1"); got != nil {
		t.Errorf("for an unknown region: %+v, want nil", got)
	}
}

// TestLoosening: the smallest change adds one value to the requirement with the fewest options. There is no such change
// if there are too many options, or if one more value is not enough.
func TestLoosening(t *testing.T) {
	t.Parallel()
	in := func(key string, values ...string) diagnosis.Requirement {
		return diagnosis.Requirement{Key: key, Operator: "In", Values: values}
	}
	const family, arch, instanceType = "karpenter.k8s.aws/instance-family", "kubernetes.io/arch", "node.kubernetes.io/instance-type"
	for name, c := range map[string]struct {
		requirements []diagnosis.Requirement
		want         *diagnosis.Loosening
	}{
		"a family of the other architecture": {[]diagnosis.Requirement{in("team", "a"), in(family, "t4g"),
			in(arch, "amd64")}, &diagnosis.Loosening{Index: 2, Key: arch, Value: "arm64"}},
		"a type of the other architecture": {[]diagnosis.Requirement{in(arch, "arm64"), in(instanceType, "m5.large")},
			&diagnosis.Loosening{Index: 0, Key: arch, Value: "amd64"}},
		"type outside the family": {[]diagnosis.Requirement{in(family, "m5"), in(instanceType, "c5.large")},
			&diagnosis.Loosening{Index: 0, Key: family, Value: "c5"}},
		"unknown family":         {[]diagnosis.Requirement{in(family, "t4h")}, nil},
		"no one value is enough": {[]diagnosis.Requirement{in(family, "t4h"), in(arch, "riscv")}, nil},
		"no requirements":        {nil, nil},
	} {
		got := loosening(diagnosis.Pool{Requirements: c.requirements}, "", "us-east-1")
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestStepsOfFamilies: the types of a pool are those that the family of its EC2NodeClass supports, with their labels.
func TestStepsOfFamilies(t *testing.T) {
	t.Parallel()
	in := func(key string, values ...string) diagnosis.Requirement {
		return diagnosis.Requirement{Key: key, Operator: "In", Values: values}
	}
	windows, build, arch := in("kubernetes.io/os", "windows"), in("node.kubernetes.io/windows-build", "10.0.20348"),
		in("kubernetes.io/arch", "amd64", "arm64")
	for _, c := range []struct {
		family       string
		requirements []diagnosis.Requirement
		amd, arm     bool // more than 100 types of amd64, and 50 of arm64, remain
	}{
		{"Windows2022", []diagnosis.Requirement{windows}, true, false},
		{"Windows2022", []diagnosis.Requirement{arch, windows, build}, true, false},
		{"Windows2022", nil, true, false},
		{"Windows2019", []diagnosis.Requirement{build}, false, false},
		{"Windows2025", []diagnosis.Requirement{in("kubernetes.io/os", "linux")}, false, false},
		{"AL2023", []diagnosis.Requirement{windows}, false, false},
		{"AL2023", []diagnosis.Requirement{in("kubernetes.io/os", "linux"), arch}, true, true},
		{"Bottlerocket", []diagnosis.Requirement{in("kubernetes.io/os", "linux"), arch}, true, true},
		{"Custom", []diagnosis.Requirement{in("kubernetes.io/os", "linux"), in("kubernetes.io/arch", "arm64")}, false, true},
	} {
		all := countTypesPerRequirement(diagnosis.Pool{Requirements: c.requirements}, c.family, "us-east-1")
		left := all[len(all)-1].Left
		if (left["amd64"] > 100) != c.amd || (left["arm64"] > 50) != c.arm {
			t.Errorf("%s, %v: %v; want amd64: %t, arm64: %t", c.family, c.requirements, all, c.amd, c.arm)
		}
	}
}
