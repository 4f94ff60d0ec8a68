package checks_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// fixOf diagnoses a situation and returns the fix of a check's first broken or suspicious finding; empty if there is
// none.
func fixOf(s *situation, id string) string {
	found := Actionable(Diagnose(s.e))
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == id })
	if i < 0 {
		return ""
	}
	return found[i].Fix.String()
}

// TestRelaunched: a fix that changes an EC2NodeClass also deletes the NodeClaims of instances that have not joined,
// because they keep the old configuration. Instances that have joined are kept.
func TestRelaunched(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.addConsoleLine(`kubelet[1893]: err="x509: certificate signed by unknown authority"`)
	if fix := fixOf(s, "BOOT-2"); !strings.HasSuffix(fix, "\nkubectl delete nodeclaim --wait=false claim-2") {
		t.Errorf("the fix is %q, want the deletion of claim-2 at its end", fix)
	}
	for _, name := range []string{"claim-3", "claim-4", "claim-5", "claim-6", "claim-7"} {
		waiting := s.e.Claims.Value[1]
		waiting.Name = name
		s.e.Claims.Value = append(s.e.Claims.Value, waiting)
	}
	if fix := fixOf(s, "BOOT-2"); !strings.HasSuffix(fix, " claim-2 claim-3 claim-4 claim-5 claim-6   # and the others that have not joined") {
		t.Errorf("for six instances, the fix is %q, want five NodeClaims and a hint", fix)
	}
	s = &situation{healthy()}
	s.e.Instances.Value[1].Groups, s.group().Out = nil, nil
	if fix := fixOf(s, "NET-1"); fix == "" || strings.Contains(fix, "nodeclaim") {
		t.Errorf("the fix for a security group is %q, want no deletion of NodeClaims", fix)
	}
}

// TestPastEvents: a warning event counts until the object of the event recovers or is deleted. Events about objects
// that are no NodeClaim, EC2NodeClass or NodePool never count.
func TestPastEvents(t *testing.T) {
	t.Parallel()
	isReported := func(kind, name string, change func(*situation)) bool {
		s := &situation{healthy()}
		s.e.Subnets.Value = append(s.e.Subnets.Value, Subnet{ID: "subnet-2", VPC: "vpc-1", Zone: "us-east-1b", Free: 2, HostnameType: "ip-name"})
		s.e.Routes.Value[0].Subnets = append(s.e.Routes.Value[0].Subnets, "subnet-2")
		s.class().Subnets = append(s.class().Subnets, "subnet-2")
		s.addEvent(kind, name, "LaunchFailed", "InsufficientFreeAddressesInSubnet: subnet-2")
		change(s)
		return fixOf(s, "NET-5") != ""
	}
	becameReady := func(isLater bool) func(*situation) { // one nanosecond after the event at noon, or before it
		return func(s *situation) {
			since := noon.Add(-1)
			if isLater {
				since = noon.Add(1)
			}
			s.class().Conditions = []Condition{{Type: "Ready", Status: "True", Since: since}}
			s.pool().Conditions = s.class().Conditions
		}
	}
	noChange := func(*situation) {}
	for _, c := range []struct {
		name, kind, object string // name of the case; kind and name of the event's object
		change             func(*situation)
		want               bool
	}{
		{"a NodeClaim that does not exist", "NodeClaim", "claim-9", noChange, false},
		{"a NodeClaim that was launched earlier", "NodeClaim", "claim-2", noChange, true},
		{"a NodeClaim that was launched later", "NodeClaim", "claim-2",
			func(s *situation) { s.e.Claims.Value[1].Conditions[0].Since = noon.Add(1) }, false},
		{"a class that is not ready", "EC2NodeClass", "default", noChange, true},
		{"a class that became ready earlier", "EC2NodeClass", "default", becameReady(false), true},
		{"a class that became ready later", "EC2NodeClass", "default", becameReady(true), false},
		{"a class that does not exist", "EC2NodeClass", "other", noChange, false},
		{"a NodePool that became ready later", "NodePool", "default", becameReady(true), false},
		{"a pod that waits", "Pod", "shop/web-1", noChange, false},
		{"an object of another kind", "Node", "x", noChange, false},
	} {
		if got := isReported(c.kind, c.object, c.change); got != c.want {
			t.Errorf("%s: reported %t, want %t", c.name, got, c.want)
		}
	}
}

// TestOrphanGroups: there is no finding about the security groups of an instance without NodeClaim.
func TestOrphanGroups(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.e.Instances.Value = append(s.e.Instances.Value, Instance{ID: "i-9", State: "running", Class: "gone", Groups: []string{"sg-none"}})
	found := Actionable(Diagnose(s.e))
	if len(found) != 1 || found[0].Check != "ID-4" {
		t.Errorf("want only a finding of ID-4:\n%s", failures(found))
	}
}
