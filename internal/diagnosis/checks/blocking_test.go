package checks_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestHeldFirst: findings that hold pods come first, and classes that no NodePool uses come last.
func TestHeldFirst(t *testing.T) {
	t.Parallel()
	order := func(s *situation) string {
		var out []string
		for _, f := range Worst(Diagnose(s.e)) {
			text := f.Check + " " + f.Subject
			if f.Unused {
				text += " unused"
			}
			out = append(out, text)
		}
		return strings.Join(out, ", ")
	}
	other := func(s *situation, name string) {
		c := *s.class()
		c.Name, c.UID, c.Role, c.Profile = name, "uid-"+name, "Nobody", ""
		s.e.Classes.Value = append(s.e.Classes.Value, c)
		s.e.Roles["Nobody"] = has("iam:GetRole Nobody",
			Role{ARN: strings.Replace(nodeRole, "NodeRole", "Nobody", 1), Trusts: []string{"ec2.amazonaws.com"},
				Policies: s.e.Roles["NodeRole"].Value.Policies, Created: noon.Add(-time.Hour)})
	}
	s := &situation{healthy()}
	s.late(10 * time.Minute)
	other(s, "aaa")
	other(s, "bbb")
	if got, want := order(s), "READY-3 NodeClaim claim-2, AUTH-2 EC2NodeClass aaa unused, AUTH-2 EC2NodeClass bbb unused"; !strings.HasPrefix(got, want) {
		t.Errorf("the order is %s, want %s", got, want)
	}
	// A class whose NodeClaims are all initialized holds no pods; one with a late NodeClaim does.
	s = &situation{healthy()}
	s.late(10 * time.Minute)
	other(s, "aaa")
	p := *s.pool()
	p.Name, p.Class = "aaa", "aaa"
	s.e.Pools.Value = append(s.e.Pools.Value, p)
	one := s.e.Claims.Value[0]
	one.Name, one.Class, one.Pool, one.ProviderID = "aaa-1", "aaa", "aaa", ""
	s.e.Claims.Value = append(s.e.Claims.Value, one)
	if got, want := order(s), "READY-3 NodeClaim claim-2, AUTH-2 EC2NodeClass aaa"; !strings.HasPrefix(got, want) {
		t.Errorf("the order is %s, want %s", got, want)
	}
	// Pods may be waiting for a class without NodeClaims.
	s.e.Claims.Value = s.e.Claims.Value[:2]
	if got, want := order(s), "AUTH-2 EC2NodeClass aaa, "; !strings.HasPrefix(got, want) {
		t.Errorf("the order is %s, want %s", got, want)
	}
}
