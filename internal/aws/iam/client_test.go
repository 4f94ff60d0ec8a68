package iam_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// fixture is an emulated account with the roles node, other and /team/a/deep.
type fixture struct {
	server  *emulator.Server
	cfg     aws.Config
	estate  world.ClusterResources
	account *world.Account
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	now := time.Now().UTC()
	w, estate, err := world.New(now, world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	s := fixture{server: &emulator.Server{World: w}, estate: estate, account: w.Account(emulator.DefaultAccount)}
	for _, r := range []identity.Role{{Name: "node"}, {Name: "other"}, {Name: "deep", Path: "/team/a/"}} {
		if _, err := s.account.CreateRole(now, r); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewServer(s.server)
	t.Cleanup(srv.Close)
	s.cfg = aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}
	return s
}

func (s fixture) client(t *testing.T, uid string) *iam.Client {
	t.Helper()
	return iam.New(s.cfg, iam.Cluster{Name: "prod", UID: uid})
}

// profiles returns the role of each instance profile that exists, by the profile's name.
func (s fixture) profiles() map[string]string {
	out := map[string]string{}
	s.server.Do(func(*world.World, time.Time) {
		for _, p := range s.account.Profiles("/") {
			out[p.Name] = p.Role
		}
	})
	return out
}

func TestProfile(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	d := s.client(t, "uid-1")
	class := iam.NodeClass{Name: "default", UID: "class-1", Role: "node", Tags: map[string]string{"team": "a"}}
	first, err := d.EnsureProfile(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := d.Profile(t.Context(), first.Name)
	if err != nil {
		t.Fatal(err)
	}
	want := iam.Profile{Name: d.ProfileName(class), Path: "/karpenter/us-east-1/prod/class-1/", Role: "node",
		ARN:     "arn:aws:iam::" + emulator.DefaultAccount + ":instance-profile/karpenter/us-east-1/prod/class-1/" + first.Name,
		RoleARN: "arn:aws:iam::" + emulator.DefaultAccount + ":role/node",
		Tags: map[string]string{"team": "a", "kubernetes.io/cluster/prod": "owned", "eks:eks-cluster-name": "prod",
			"karpenter.k8s.aws/ec2nodeclass": "default",
			"topology.kubernetes.io/region":  "us-east-1", "joiner.sh/cluster-uid": "uid-1"}}
	if seen.Created.IsZero() {
		t.Error("the profile has no creation time")
	}
	want.Created = seen.Created
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	// Another process repeats EnsureProfile, which then creates nothing and makes one call.
	before := s.server.Calls()
	again, err := s.client(t, "uid-1").EnsureProfile(t.Context(), class)
	if err != nil || again.Name != first.Name {
		t.Errorf("the second EnsureProfile returned %s, %v; want %s", again.Name, err, first.Name)
	}
	after := s.server.Calls()
	if after["iam:CreateInstanceProfile"] != before["iam:CreateInstanceProfile"] ||
		after["iam:GetInstanceProfile"] != before["iam:GetInstanceProfile"]+1 {
		t.Errorf("calls after the second EnsureProfile: %v, before: %v; want one more GetInstanceProfile", after, before)
	}
	// Another role gets another profile, so that instances with the old role keep it.
	class.Role = "other"
	second, err := d.EnsureProfile(t.Context(), class)
	if err != nil || second.Name == first.Name {
		t.Fatalf("EnsureProfile for another role returned %s, %v; want another profile", second.Name, err)
	}
	if diff := cmp.Diff(map[string]string{first.Name: "node", second.Name: "other"}, s.profiles()); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
	if err := d.DeleteProfiles(t.Context(), "class-1"); err != nil || len(s.profiles()) != 0 {
		t.Errorf("after DeleteProfiles %v are left, %v; want none", s.profiles(), err)
	}
	if err := d.DeleteProfile(t.Context(), first.Name); err != nil {
		t.Errorf("deleting a profile that does not exist: %v, want no error", err)
	}
}

// TestProfileRolePath: spec.role has a path, but IAM returns role names without their path. EnsureProfile must create
// the profile once and then accept it.
func TestProfileRolePath(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	class := iam.NodeClass{Name: "default", UID: "class-1", Role: "team/a/deep"}
	for range 3 {
		p, err := s.client(t, "uid-1").EnsureProfile(t.Context(), class)
		if err != nil || p.Role != "deep" {
			t.Fatalf("%+v, %v; want role deep", p, err)
		}
	}
	calls := s.server.Calls()
	if calls["iam:CreateInstanceProfile"] != 1 || calls["iam:AddRoleToInstanceProfile"] != 1 || len(s.profiles()) != 1 {
		t.Errorf("made %d profiles with the calls %v, want one profile", len(s.profiles()), calls)
	}
}

// TestRolePathMismatch: EnsureProfile rejects a spec.role whose path or account differs from that of the role with this
// name.
func TestRolePathMismatch(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	for role, want := range map[string]string{
		"team/b/deep":  "RolePathMismatch",
		"/team/a/deep": "",
		"arn:aws:iam::" + emulator.DefaultAccount + ":role/team/a/deep": "",
		"arn:aws:iam::999999999999:role/node":                           "RolePathMismatch",
		"deep":                                                          "",
		"team/":                                                         "InvalidRole",
		"my role":                                                       "InvalidRole",
	} {
		// The UID gives each role its own profile.
		class := iam.NodeClass{Name: "default", UID: fmt.Sprintf("class-%x", role), Role: role}
		for range 2 { // first when the profile is created, then when it exists
			_, err := s.client(t, "uid-1").EnsureProfile(t.Context(), class)
			e := awserr.Of(err)
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: %v, want no error", role, err)
			case want != "" && (e == nil || e.Kind != awserr.Misconfigured || e.Reason != want || !strings.Contains(err.Error(), "spec.role")):
				t.Errorf("%s: %v, want %s and the name of the field", role, err, want)
			}
		}
	}
}

func TestProfileErrors(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	d := s.client(t, "uid-1")
	_, err := d.EnsureProfile(t.Context(), iam.NodeClass{Name: "default", UID: "class-1", Role: "no-such-role"})
	if e := awserr.Of(err); e == nil || e.Reason != "RoleNotFound" || !strings.Contains(err.Error(), `"no-such-role"`) ||
		!strings.Contains(err.Error(), "spec.role") {
		t.Errorf("unknown role: %v, want RoleNotFound, the role's name and spec.role", err)
	}
	// IAM fails after the profile was created, so the profile has no role yet.
	class := iam.NodeClass{Name: "default", UID: "class-2", Role: "node"}
	s.server.Do(func(w *world.World, _ time.Time) {
		w.Faults.CallErrors = []*world.CallError{{Call: "iam:AddRoleToInstanceProfile", Count: 1, Status: 503, Code: "ServiceUnavailable"}}
	})
	if _, err := d.EnsureProfile(t.Context(), class); !awserr.Is(err, awserr.Transient) {
		t.Errorf("IAM fails: %v, want a transient error", err)
	}
	if p, err := d.EnsureProfile(t.Context(), class); err != nil || s.profiles()[p.Name] != "node" {
		t.Errorf("after the failure: %+v, %v; want a profile with role node", p, err)
	}
	s.server.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "iam:*"}} })
	_, err = d.EnsureProfile(t.Context(), class)
	if !awserr.Is(err, awserr.Denied) {
		t.Errorf("IAM denies: %v, want Denied", err)
	}
}

// TestProfileOfClusterWithSameName: a cluster with our name and another UID has its own profiles.
func TestProfileOfClusterWithSameName(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	class := iam.NodeClass{Name: "default", UID: "class-1", Role: "node"} // the class has the same UID in both clusters if it was restored from a backup
	a, err := s.client(t, "uid-a").EnsureProfile(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	other := s.client(t, "uid-b")
	b, err := other.EnsureProfile(t.Context(), class)
	if err != nil || a.Name == b.Name {
		t.Fatalf("%s and %s, %v; want two different profiles", a.Name, b.Name, err)
	}
	if err := other.DeleteProfile(t.Context(), a.Name); !awserr.Is(err, awserr.Refused) {
		t.Errorf("deleting the other cluster's profile: %v, want a refusal", err)
	}
	if err := other.DeleteProfiles(t.Context(), "class-1"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{a.Name: "node"}, s.profiles()); diff != "" {
		t.Errorf("profiles that are left (-want +got):\n%s", diff)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	d := newFixture(t).client(t, "")
	caller, err := d.Identity(t.Context())
	if err != nil || caller.Account != emulator.DefaultAccount || caller.ARN == "" {
		t.Errorf("identity %+v, %v; want the default account and an ARN", caller, err)
	}
	if role := (iam.Identity{ARN: "arn:aws:sts::1:assumed-role/joiner/i-0123"}).Role(); role != "joiner" {
		t.Errorf("role %q, want joiner", role)
	}
}
