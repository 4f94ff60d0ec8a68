package checks_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestPreflight: Preflight returns the findings of a class that are certain without an instance. Findings that are only
// likely, are about one of two subnets, or were observed on instances are left out.
func TestPreflight(t *testing.T) {
	t.Parallel()
	unmapped := func(s *situation) { s.e.Entries.Value = s.e.Entries.Value[:1] }
	closedGroup := func(s *situation) { s.group().Out = nil }
	noRoute := func(s *situation) { s.e.Routes.Value[0].Routes = s.e.Routes.Value[0].Routes[:1] }
	for name, c := range map[string]struct {
		breaks func(*situation)
		want   string // IDs of the checks, separated by commas
	}{
		"no fault":             {func(*situation) {}, ""},
		"a role without entry": {unmapped, "AUTH-2"},
		"a closed group":       {closedGroup, "NET-1"},
		"the root cause first": {func(s *situation) { unmapped(s); closedGroup(s) }, "NET-1,AUTH-2"},
		"no default route":     {noRoute, "NET-4"},
		"one subnet of two": {func(s *situation) {
			noRoute(s)
			s.class().Subnets = []string{"subnet-1", "subnet-2"}
			s.e.Routes.Value[0].Main = false
		}, ""},
		"an unused closed group": {func(s *situation) { closedGroup(s); s.class().Groups = []string{"sg-cluster"} }, ""},
		"a symptom on a console": {func(s *situation) { s.addConsoleLine(unauthorized) }, ""},
		"no image for amd64":     {func(s *situation) { s.e.Images.Value[0].Architecture = "arm64" }, "ARCH-2"},
		"a role without managed policies": {func(s *situation) {
			s.e.Roles["NodeRole"] = itemOf("iam:GetRole", Role{ARN: nodeRole, Trusts: []string{"ec2.amazonaws.com"}})
		}, ""},
		"entries not readable": {func(s *situation) {
			unmapped(s)
			s.e.Entries = AbsentItem[[]Entry]("eks:ListAccessEntries", noon, Denied, "eks:ListAccessEntries")
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
				t.Errorf("checks with findings: %v, want %s", got, c.want)
			}
		})
	}
}

// TestJoinBlockers: the findings for an instance are about its class, its subnet or the cluster. Findings about other
// classes and subnets are left out.
func TestJoinBlockers(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.group().Out = nil
	s.e.Routes.Value[0].Routes = s.e.Routes.Value[0].Routes[:1]
	s.e.Classes.Value = append(s.e.Classes.Value,
		Class{Name: "other", Role: "NodeRole", Profile: "prod_1", Groups: []string{"sg-cluster"}, Subnets: []string{"subnet-1"}})
	findings := Diagnose(s.e)
	checks := func(scope Scope) []string {
		var out []string
		for _, f := range JoinBlockers(findings, scope) {
			out = append(out, f.Check)
		}
		return out
	}
	if got := checks(Scope{Class: "default", Instance: "i-2", Subnet: "subnet-1"}); !slices.Contains(got, "NET-1") ||
		!slices.Contains(got, "NET-4") {
		t.Errorf("checks with findings: %v, want NET-1 about the class and NET-4 about the subnet", got)
	}
	if got := checks(Scope{Class: "default", Instance: "i-2", Subnet: "subnet-2"}); slices.Contains(got, "NET-4") {
		t.Errorf("checks with findings: %v, want no NET-4, which is about another subnet", got)
	}
	if got := checks(Scope{Class: "other"}); slices.Contains(got, "NET-1") || !slices.Contains(got, "NET-4") {
		t.Errorf("checks with findings: %v, want NET-4 and not NET-1, which is about another class", got)
	}
	s.e.Routes = AbsentItem[[]RouteTable]("ec2:DescribeRouteTables", noon, Denied, "ec2:DescribeRouteTables")
	if got := MissingPermissions(s.e); !slices.Equal(got, []string{"ec2:DescribeRouteTables"}) {
		t.Errorf("missing permissions: %v, want ec2:DescribeRouteTables", got)
	}
}
