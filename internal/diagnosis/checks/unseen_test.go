package checks_test

import (
	"strings"
	"testing"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// blindOf returns a healthy cluster whose Kubernetes objects are all unknown, for the same reason.
func blindOf(absent Absence, why string) Evidence {
	e := healthy()
	e.Home, e.AuthMap, e.Controller = lacking[Home](absent, why), lacking[AuthMap](absent, why), lacking[Controller](absent, why)
	e.Classes, e.Pools, e.Claims = lacking[[]Class](absent, why), lacking[[]Pool](absent, why), lacking[[]Claim](absent, why)
	e.Nodes, e.Pods, e.Daemons = lacking[[]Node](absent, why), lacking[[]Pod](absent, why), lacking[[]DaemonSet](absent, why)
	e.Lease = lacking[Lease](absent, why)
	e.Events, e.UserData = lacking[[]Event](absent, why), lacking[[]UserDataProblem](absent, why)
	return e
}

func lacking[T any](absent Absence, why string) Item[T] {
	return Lacking[T]("source", noon, absent, why)
}

// TestUnseen: a system is unseen if nothing is known of it. The checks do not repeat its reason.
func TestUnseen(t *testing.T) {
	t.Parallel()
	some := blindOf(Denied, "to get and list nodes")
	some.Nodes = healthy().Nodes
	none := blindOf(NotAsked, "no kubeconfig")
	none.AuthMap = lacking[AuthMap](Missing, "") // Kubernetes answered
	for name, tt := range map[string]struct {
		e    Evidence
		want string // empty: the system is not unseen
		told bool   // each check reports its missing permission
	}{
		"all seen":      {e: healthy()},
		"some denied":   {e: some},
		"one not found": {e: none},
		"not asked":     {e: blindOf(NotAsked, "no kubeconfig"), want: "Kubernetes could not be reached: no kubeconfig"},
		"failed":        {e: blindOf(Failed, "refused"), want: "Kubernetes could not be reached: refused"},
		"no reason":     {e: blindOf(Failed, ""), want: "Kubernetes could not be reached: the call failed without a reason", told: true},
		"all denied": {e: blindOf(Denied, "to get and list nodes"), told: true,
			want: "Kubernetes could not be read: every request was denied, for instance the permission to get and list nodes is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tt.e.Unseen()
			if tt.want == "" {
				if len(got) != 0 {
					t.Errorf("unseen: %v", got)
				}
				return
			}
			if len(got) != 1 || got[0].String() != tt.want {
				t.Fatalf("unseen: %v, want %s", got, tt.want)
			}
			told := false
			for _, f := range Diagnose(tt.e) {
				told = told || f.Verdict == Unknown && strings.Contains(f.Cause, "NodePools") && !got[0].Explains(f)
			}
			if told != tt.told {
				t.Errorf("checks repeat the reason: %v, want %v", told, tt.told)
			}
		})
	}
}

// TestUnseenAWS: knowing the caller identity, which needs no permission, does not count as having read AWS.
func TestUnseenAWS(t *testing.T) {
	t.Parallel()
	e := Evidence{Caller: Found("sts:GetCallerIdentity", noon, "arn"), Home: healthy().Home}
	got := e.Unseen()
	if len(got) != 1 || got[0].System != "AWS" || got[0].Why != "no call was made" {
		t.Errorf("unseen: %+v", got)
	}
}

// TestUnseenAlike: a failure of AWS is reported although Kubernetes failed for the same reason, and a failure of Kubernetes alone is not
// repeated.
func TestUnseenAlike(t *testing.T) {
	t.Parallel()
	const late = "there was no answer in time"
	for name, tt := range map[string]struct {
		breaks func(*Evidence)
		told   bool
	}{
		"AWS answers":       {func(*Evidence) {}, false},
		"another reason":    {func(e *Evidence) { e.Cluster = lacking[Cluster](Failed, "it is down") }, false},
		"cluster times out": {func(e *Evidence) { e.Cluster = lacking[Cluster](Failed, late) }, true},
		"images time out":   {func(e *Evidence) { e.Images = lacking[[]Image](Failed, late) }, true},
		"role times out":    {func(e *Evidence) { e.Roles = map[string]Item[Role]{"NodeRole": lacking[Role](Failed, late)} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := blindOf(Failed, late)
			tt.breaks(&e)
			unseen := e.Unseen()
			if len(unseen) != 1 || unseen[0].System != "Kubernetes" {
				t.Fatalf("unseen: %+v", unseen)
			}
			told := false
			for _, f := range Diagnose(e) {
				told = told || f.Verdict == Unknown && strings.HasSuffix(f.Cause, late) && !unseen[0].Explains(f)
			}
			if told != tt.told {
				t.Errorf("checks report the timeout: %v, want %v", told, tt.told)
			}
		})
	}
}
