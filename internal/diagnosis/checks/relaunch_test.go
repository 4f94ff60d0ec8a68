package checks_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// fixOf diagnoses a situation and returns the fix of a check's worst finding; empty if the check has no bad finding.
func fixOf(s *situation, id string) string {
	found := Worst(Diagnose(s.e))
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == id })
	if i < 0 {
		return ""
	}
	return found[i].Fix.String()
}

// TestRelaunched: a fix that changes an EC2NodeClass also replaces the instances that cannot join with the old class.
// It keeps instances that have joined.
func TestRelaunched(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.says(`kubelet[1893]: err="x509: certificate signed by unknown authority"`)
	if fix := fixOf(s, "BOOT-2"); !strings.HasSuffix(fix, "\nkubectl delete nodeclaim --wait=false claim-2") {
		t.Errorf("the fix is %q", fix)
	}
	for _, id := range []string{"claim-3", "claim-4", "claim-5", "claim-6", "claim-7"} {
		one := s.e.Claims.Value[1]
		one.Name = id
		s.e.Claims.Value = append(s.e.Claims.Value, one)
	}
	if fix := fixOf(s, "BOOT-2"); !strings.HasSuffix(fix, " claim-2 claim-3 claim-4 claim-5 claim-6   # and the others that have not joined") {
		t.Errorf("for many instances, the fix is %q", fix)
	}
	s = &situation{healthy()}
	s.e.Instances.Value[1].Groups, s.group().Out = nil, nil
	if fix := fixOf(s, "NET-1"); fix == "" || strings.Contains(fix, "nodeclaim") {
		t.Errorf("the fix for the running instance is %q", fix)
	}
}

// TestPastEvents: a warning counts for as long as its cause lasts.
func TestPastEvents(t *testing.T) {
	t.Parallel()
	told := func(kind, name string, change func(*situation)) bool {
		s := &situation{healthy()}
		s.e.Subnets.Value = append(s.e.Subnets.Value, Subnet{ID: "subnet-2", VPC: "vpc-1", Zone: "us-east-1b", Free: 2, HostnameType: "ip-name"})
		s.e.Routes.Value[0].Subnets = append(s.e.Routes.Value[0].Subnets, "subnet-2")
		s.class().Subnets = append(s.class().Subnets, "subnet-2")
		s.event(kind, name, "LaunchFailed", "InsufficientFreeAddressesInSubnet: subnet-2")
		change(s)
		return fixOf(s, "NET-5") != ""
	}
	as := func(kind string, later bool) func(*situation) {
		return func(s *situation) {
			since := noon.Add(-1)
			if later {
				since = noon.Add(1)
			}
			s.class().Conditions = []Condition{{Type: kind, Status: "True", Since: since}}
			s.pool().Conditions = s.class().Conditions
		}
	}
	none := func(*situation) {}
	for _, c := range []struct {
		name, kind, of string
		change         func(*situation)
		want           bool
	}{
		{"a claim that is gone", "NodeClaim", "claim-9", none, false},
		{"a claim that launched before", "NodeClaim", "claim-2", none, true},
		{"a claim that launched since", "NodeClaim", "claim-2",
			func(s *situation) { s.e.Claims.Value[1].Conditions[0].Since = noon.Add(1) }, false},
		{"a class that is not ready", "EC2NodeClass", "default", none, true},
		{"a class that was ready before", "EC2NodeClass", "default", as("Ready", false), true},
		{"a class that is ready since", "EC2NodeClass", "default", as("Ready", true), false},
		{"a class that is gone", "EC2NodeClass", "other", none, false},
		{"a pool that is ready since", "NodePool", "default", as("Ready", true), false},
		{"a pod that waits", "Pod", "shop/web-1", none, false},
		{"something else", "Node", "x", none, false},
	} {
		if got := told(c.kind, c.of, c.change); got != c.want {
			t.Errorf("%s: reported %t, want %t", c.name, got, c.want)
		}
	}
}

// TestStrangers: the security groups of an instance without NodeClaim are not judged.
func TestStrangers(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.e.Instances.Value = append(s.e.Instances.Value, Instance{ID: "i-9", State: "running", Class: "gone", Groups: []string{"sg-none"}})
	found := Worst(Diagnose(s.e))
	if len(found) != 1 || found[0].Check != "ID-4" {
		t.Errorf("found:\n%s", failures(found))
	}
}
