package checks_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// TestBlockingFirst: findings that block pods come first, and findings about classes that no NodePool uses come last.
func TestBlockingFirst(t *testing.T) {
	t.Parallel()
	order := func(s *situation) string { // check and subject of each finding
		var out []string
		for _, f := range Actionable(Diagnose(s.e)) {
			text := f.Check + " " + f.Subject
			if f.Unused {
				text += " unused"
			}
			out = append(out, text)
		}
		return strings.Join(out, ", ")
	}
	addUnmappedClass := func(s *situation, name string) {
		c := *s.class()
		c.Name, c.UID, c.Role, c.Profile = name, "uid-"+name, "OtherRole", ""
		s.e.Classes.Value = append(s.e.Classes.Value, c)
		s.e.Roles["OtherRole"] = itemOf("iam:GetRole OtherRole",
			Role{ARN: strings.Replace(nodeRole, "NodeRole", "OtherRole", 1), Trusts: []string{"ec2.amazonaws.com"},
				Policies: s.e.Roles["NodeRole"].Value.Policies, Created: noon.Add(-time.Hour)})
	}
	s := &situation{healthy()}
	s.launchedAgo(10 * time.Minute)
	addUnmappedClass(s, "aaa")
	addUnmappedClass(s, "bbb")
	if got, want := order(s), "READY-3 NodeClaim claim-2, AUTH-2 EC2NodeClass aaa unused, AUTH-2 EC2NodeClass bbb unused"; !strings.HasPrefix(got, want) {
		t.Errorf("the order is %s, want first %s", got, want)
	}
	// A NodePool uses class aaa, whose NodeClaims are all initialized: the class blocks no pods, and the late NodeClaim
	// comes first.
	s = &situation{healthy()}
	s.launchedAgo(10 * time.Minute)
	addUnmappedClass(s, "aaa")
	p := *s.pool()
	p.Name, p.Class = "aaa", "aaa"
	s.e.Pools.Value = append(s.e.Pools.Value, p)
	initialized := s.e.Claims.Value[0]
	initialized.Name, initialized.Class, initialized.Pool, initialized.ProviderID = "aaa-1", "aaa", "aaa", ""
	s.e.Claims.Value = append(s.e.Claims.Value, initialized)
	if got, want := order(s), "READY-3 NodeClaim claim-2, AUTH-2 EC2NodeClass aaa"; !strings.HasPrefix(got, want) {
		t.Errorf("the order is %s, want first %s", got, want)
	}
	// Without its NodeClaim, class aaa blocks pods, because the waiting pods may need it.
	s.e.Claims.Value = s.e.Claims.Value[:2]
	if got, want := order(s), "AUTH-2 EC2NodeClass aaa, "; !strings.HasPrefix(got, want) {
		t.Errorf("the order is %s, want first %s", got, want)
	}
}
