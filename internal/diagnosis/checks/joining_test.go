package checks_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestAhead: by class, only failures that are certain before there is an instance. Likely ones, those of one of two subnets, and those
// observed on instances are left out.
func TestAhead(t *testing.T) {
	t.Parallel()
	unmapped := func(s *situation) { s.e.Entries.Value = s.e.Entries.Value[:1] }
	closed := func(s *situation) { s.group().Out = nil }
	noWay := func(s *situation) { s.e.Routes.Value[0].Routes = s.e.Routes.Value[0].Routes[:1] }
	for name, c := range map[string]struct {
		breaks func(*situation)
		want   string // checks, with commas
	}{
		"nothing":              {func(*situation) {}, ""},
		"a role without entry": {unmapped, "AUTH-2"},
		"a closed group":       {closed, "NET-1"},
		"both, the root first": {func(s *situation) { unmapped(s); closed(s) }, "NET-1,AUTH-2"},
		"no way out":           {noWay, "NET-4"},
		"one subnet of two": {func(s *situation) {
			noWay(s)
			s.class().Subnets = []string{"subnet-1", "subnet-2"}
			s.e.Routes.Value[0].Main = false
		}, ""},
		"another class's group": {func(s *situation) { closed(s); s.class().Groups = []string{"sg-cluster"} }, ""},
		"a console":             {func(s *situation) { s.says(unauthorized) }, ""},
		"no image":              {func(s *situation) { s.e.Images.Value[0].Architecture = "arm64" }, "ARCH-2"},
		"policies by their names": {func(s *situation) {
			s.e.Roles["NodeRole"] = has("iam:GetRole", Role{ARN: nodeRole, Trusts: []string{"ec2.amazonaws.com"}})
		}, ""},
		"no permission": {func(s *situation) {
			unmapped(s)
			s.e.Entries = Lacking[[]Entry]("eks:ListAccessEntries", noon, Denied, "eks:ListAccessEntries")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &situation{healthy()}
			c.breaks(s)
			var got []string
			for _, f := range Preflight(s.e)["default"] {
				got = append(got, f.Check)
				if f.Cause == "" || f.Fix.IsZero() {
					t.Errorf("%s has no cause or no fix: %+v", f.Check, f)
				}
			}
			if strings.Join(got, ",") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

// TestJoining: the findings for one instance are about its class, its subnet or the cluster, and no other.
func TestJoining(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.group().Out = nil
	s.e.Routes.Value[0].Routes = s.e.Routes.Value[0].Routes[:1]
	s.e.Classes.Value = append(s.e.Classes.Value,
		Class{Name: "other", Role: "NodeRole", Profile: "prod_1", Groups: []string{"sg-cluster"}, Subnets: []string{"subnet-1"}})
	findings := Diagnose(s.e)
	checks := func(q Scope) []string {
		var out []string
		for _, f := range Joining(findings, q) {
			out = append(out, f.Check)
		}
		return out
	}
	if got := checks(Scope{Class: "default", Instance: "i-2", Subnet: "subnet-1"}); !slices.Contains(got, "NET-1") ||
		!slices.Contains(got, "NET-4") {
		t.Errorf("of the class %v", got)
	}
	if got := checks(Scope{Class: "default", Instance: "i-2", Subnet: "subnet-2"}); slices.Contains(got, "NET-4") {
		t.Errorf("of another subnet %v", got)
	}
	if got := checks(Scope{Class: "other"}); slices.Contains(got, "NET-1") || !slices.Contains(got, "NET-4") {
		t.Errorf("of another class %v", got)
	}
	s.e.Routes = Lacking[[]RouteTable]("ec2:DescribeRouteTables", noon, Denied, "ec2:DescribeRouteTables")
	if got := Gaps(s.e); !slices.Equal(got, []string{"ec2:DescribeRouteTables"}) {
		t.Errorf("gaps %v", got)
	}
}
