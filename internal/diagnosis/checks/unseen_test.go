package checks_test

import (
	"strings"
	"testing"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// withoutKubernetes returns the evidence of a healthy cluster in which all items of Kubernetes are absent for the same
// reason.
func withoutKubernetes(absent Absence, why string) Evidence {
	e := healthy()
	e.Identity, e.AuthMap, e.Controller = lacking[ClusterIdentity](absent, why), lacking[AuthMap](absent, why), lacking[Controller](absent, why)
	e.Classes, e.Pools, e.Claims = lacking[[]Class](absent, why), lacking[[]Pool](absent, why), lacking[[]Claim](absent, why)
	e.Nodes, e.Pods, e.Daemons = lacking[[]Node](absent, why), lacking[[]Pod](absent, why), lacking[[]DaemonSet](absent, why)
	e.Lease = lacking[Lease](absent, why)
	e.Events, e.UserData = lacking[[]Event](absent, why), lacking[[]UserDataProblem](absent, why)
	return e
}

func lacking[T any](absent Absence, why string) Item[T] {
	return AbsentItem[T]("source", noon, absent, why)
}

// TestUnseen: a system is unreadable if none of its items is known. Explains returns true for the Unknown findings that
// contain the system's reason. If there is no reason, Explains returns false, and also if every request was denied:
// each finding then names its own missing permission.
func TestUnseen(t *testing.T) {
	t.Parallel()
	someKnown := withoutKubernetes(Denied, "to get and list nodes")
	someKnown.Nodes = healthy().Nodes
	oneMissing := withoutKubernetes(NotAsked, "no kubeconfig")
	oneMissing.AuthMap = lacking[AuthMap](Missing, "") // Kubernetes answered that the object does not exist
	for name, tt := range map[string]struct {
		e             Evidence
		want          string // text of the unreadable system; empty: every system is readable
		isUnexplained bool   // Explains is false for the finding about NodePools
	}{
		"all known":     {e: healthy()},
		"some denied":   {e: someKnown},
		"one not found": {e: oneMissing},
		"not asked":     {e: withoutKubernetes(NotAsked, "no kubeconfig"), want: "Kubernetes could not be reached: no kubeconfig"},
		"failed":        {e: withoutKubernetes(Failed, "refused"), want: "Kubernetes could not be reached: refused"},
		"no reason":     {e: withoutKubernetes(Failed, ""), want: "Kubernetes could not be reached: the call failed without a reason", isUnexplained: true},
		"all denied": {e: withoutKubernetes(Denied, "to get and list nodes"), isUnexplained: true,
			want: "Kubernetes could not be read: every request was denied, for instance the permission to get and list nodes is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tt.e.UnreadableSystems()
			if tt.want == "" {
				if len(got) != 0 {
					t.Errorf("unreadable: %v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].String() != tt.want {
				t.Fatalf("unreadable: %v, want %s", got, tt.want)
			}
			isUnexplained := false
			for _, f := range Diagnose(tt.e) {
				isUnexplained = isUnexplained || f.Verdict == Unknown && strings.Contains(f.Cause, "NodePools") && !got[0].Explains(f)
			}
			if isUnexplained != tt.isUnexplained {
				t.Errorf("the unknown finding is unexplained: %v, want %v", isUnexplained, tt.isUnexplained)
			}
		})
	}
}

// TestUnseenAWS: AWS is unreadable if only the caller identity is known, because reading it needs no permission.
func TestUnseenAWS(t *testing.T) {
	t.Parallel()
	e := Evidence{Caller: KnownItem("sts:GetCallerIdentity", noon, "arn"), Identity: healthy().Identity}
	got := e.UnreadableSystems()
	if len(got) != 1 || got[0].System != "AWS" || got[0].Why != "no call was made" {
		t.Errorf("unreadable: %+v, want AWS with the reason: no call was made", got)
	}
}

// TestSameReason: if Kubernetes is unreadable, Explains returns true for the findings with its reason, unless an item
// of AWS is absent for the same reason.
func TestSameReason(t *testing.T) {
	t.Parallel()
	const late = "there was no answer in time"
	for name, tt := range map[string]struct {
		change        func(*Evidence) // of items of AWS
		isUnexplained bool            // Explains is false for a finding with the reason
	}{
		"AWS answers":       {func(*Evidence) {}, false},
		"another reason":    {func(e *Evidence) { e.Cluster = lacking[Cluster](Failed, "it is down") }, false},
		"cluster times out": {func(e *Evidence) { e.Cluster = lacking[Cluster](Failed, late) }, true},
		"images time out":   {func(e *Evidence) { e.Images = lacking[[]Image](Failed, late) }, true},
		"role times out":    {func(e *Evidence) { e.Roles = map[string]Item[Role]{"NodeRole": lacking[Role](Failed, late)} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := withoutKubernetes(Failed, late)
			tt.change(&e)
			unseen := e.UnreadableSystems()
			if len(unseen) != 1 || unseen[0].System != "Kubernetes" {
				t.Fatalf("unreadable: %+v, want only Kubernetes", unseen)
			}
			isUnexplained := false
			for _, f := range Diagnose(e) {
				isUnexplained = isUnexplained || f.Verdict == Unknown && strings.HasSuffix(f.Cause, late) && !unseen[0].Explains(f)
			}
			if isUnexplained != tt.isUnexplained {
				t.Errorf("a finding about the timeout is unexplained: %v, want %v", isUnexplained, tt.isUnexplained)
			}
		})
	}
}
