package checks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
	"github.com/joiner-sh/joiner/internal/diagnosis/leader"
)

// TestTakeover: for two minutes after the end of a Lease, RUN-1 is Unknown, because another controller may take over.
func TestTakeover(t *testing.T) {
	t.Parallel()
	released := func(s *situation) { s.e.Lease.Value.Holder, s.e.Lease.Value.Seconds = "", 1 }
	for name, c := range map[string]struct {
		ago    time.Duration // since the renewal of the Lease, which is valid for 15 seconds
		change func(*situation)
		want   Verdict
		cause  string // start of the finding's cause
	}{
		"Lease is valid": {14 * time.Second, nil, Fine, ""},
		"ended now": {15 * time.Second, nil, Unknown,
			"the lease of the controller ended 0 s ago; another may be about to take over"},
		"ended 90 s ago": {105 * time.Second, nil, Unknown,
			"the lease of the controller ended 90 s ago; another may be about to take over"},
		"ended 2 min ago": {135 * time.Second, nil, Broken, "no controller has been active since 2026-05-01 11:58:00Z"},
		"released 40 s ago": {40 * time.Second, released, Unknown,
			"the lease of the controller was released 40 s ago; another may be about to take over"},
		"released 2 min ago": {121 * time.Second, released, Broken, "no controller has been active since"},
		"controller pod runs": {
			105 * time.Second, func(s *situation) { s.controllerPod().Ready, s.controllerPod().Phase = true, "Running" }, Unknown,
			"the lease of the controller ended 90 s ago; another may be about to take over",
		},
		"another controller has acted": {105 * time.Second, func(s *situation) { s.e.Claims.Value[0].Created = noon.Add(-time.Minute) }, Fine, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &situation{healthy()}
			s.killController(c.ago)
			s.addUnfinishedWork()
			if c.change != nil {
				c.change(s)
			}
			found := Diagnose(s.e)
			i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == "RUN-1" })
			// An unknown finding must have evidence, and no fix.
			if got := found[i]; got.Verdict != c.want || !strings.HasPrefix(got.Cause, c.cause) || got.Verdict == Unknown &&
				(!got.Fix.IsZero() || len(got.Evidence) == 0) {
				t.Errorf("want the verdict %s with the cause %q: %+v", c.want, c.cause, got)
			}
		})
	}
}

// TestLeaderlessSince: LeaderlessSince returns when the Lease ended; zero if a controller may be active.
func TestLeaderlessSince(t *testing.T) {
	t.Parallel()
	ended := noon.Add(-45 * time.Second)
	for name, c := range map[string]struct {
		change func(*situation)
		want   time.Time
	}{
		"killed":        {func(*situation) {}, ended},
		"no Deployment": {func(s *situation) { s.e.Controller = AbsentItem[Controller]("deployments", noon, Missing, "") }, ended},
		"standby pod": {
			func(s *situation) { s.controllerPod().Ready, s.controllerPod().Phase = true, "Running" }, ended,
		},
		"Lease is valid":  {func(s *situation) { s.e.Lease.Value.Renewed = noon.Add(-time.Second) }, time.Time{}},
		"no Lease":        {func(s *situation) { s.e.Lease = AbsentItem[Lease]("leases", noon, Missing, "") }, time.Time{}},
		"Lease is denied": {func(s *situation) { s.e.Lease = AbsentItem[Lease]("leases", noon, Denied, "to list") }, time.Time{}},
		"Deployment is not known": {func(s *situation) {
			s.e.Controller = AbsentItem[Controller]("deployments", noon, Denied,
				"to list")
		}, time.Time{}},
		"NodeClaims are not known":     {func(s *situation) { s.e.Claims = AbsentItem[[]Claim]("nodeclaims", noon, Failed, "no") }, time.Time{}},
		"no leader election":           {func(s *situation) { s.e.Controller.Value.Settings["DISABLE_LEADER_ELECTION"] = "true" }, time.Time{}},
		"another controller has acted": {func(s *situation) { s.e.Claims.Value[0].Created = noon.Add(-time.Second) }, time.Time{}},
		"Lease was never renewed":      {func(s *situation) { s.e.Lease.Value.Renewed = time.Time{} }, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &situation{healthy()}
			s.killController(time.Minute)
			s.addUnfinishedWork()
			c.change(s)
			if got := leader.LeaderlessSince(s.e); !got.Equal(c.want) {
				t.Errorf("no leader since %v, want %v", got, c.want)
			}
		})
	}
}
