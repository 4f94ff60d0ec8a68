package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestUnseenInstanceIsGivenBack: a claim that is deleted while EC2 does not return its new instance yet waits for the instance, as long as
// EC2 may be behind.
func TestUnseenInstanceIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, asIf := range []string{"recorded", "not recorded"} {
		t.Run(asIf, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.Do(func(w *world.World, _ time.Time) { w.Faults.ReadLag = 30 * time.Second })
			r.classes(t)
			r.pending(t, "web", "500m", "512Mi")
			r.plan(t)
			r.work(t)
			claim := findClaim(t, r)
			if asIf == "not recorded" {
				r.start(t) // a process that ended between the two writes
				claim.Status.ProviderID = ""
				if err := r.api.Status().Update(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.api.Delete(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			begun := r.now()
			for len(r.claims(t)) > 0 && r.now().Before(begun.Add(5*time.Minute)) {
				r.ahead += 250 * time.Millisecond
				r.work(t)
			}
			if n := len(r.instances()); n > 0 || len(r.claims(t)) > 0 {
				t.Errorf("%d instances and %d claims are left\n%s", n, len(r.claims(t)), r.log)
			}
		})
	}
}

// TestDeathWhileBooting: EC2 terminates an instance before its kubelet starts. The claim is deleted, an event has EC2's reason, and
// another instance is launched after a pause that grows.
func TestDeathWhileBooting(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	why := "Client.InternalError: Client error on launch"
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Boots = []*world.Boot{{Count: 2, Fail: world.Reason{Code: "Client.InternalError", Message: why}}}
	})
	r.pending(t, "web", "500m", "512Mi")
	var pauses []time.Duration
	for range 2 {
		r.plan(t)
		r.work(t)
		if n := len(r.claims(t)); n != 1 {
			t.Fatalf("%d claims for one pod\n%s", n, r.log)
		}
		died := findClaim(t, r).Status.ProviderID
		r.ahead += 2 * time.Minute
		r.Do(func(*world.World, time.Time) {})
		if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
		r.finishDeleted(t)
		if n := len(r.claims(t)); n != 0 {
			t.Fatalf("%d claims are left\n%s", n, r.log)
		}
		if r.events.has("NodeClaim/NodeNotJoining", died, why) == "" {
			t.Errorf("no event with the cause: %v", r.events.told)
		}
		until, cause := r.Provisioner.Holds.Held(r.now(), "apps")
		if !strings.Contains(cause, why) {
			t.Errorf("the pool is on hold until %s for %q", until, cause)
		}
		r.plan(t)
		if n := len(r.claims(t)); n != 0 {
			t.Errorf("%d claims are made at once", n)
		}
		pauses = append(pauses, until.Sub(r.now()).Round(time.Second))
		r.ahead = time.Until(until) + time.Second
	}
	if pauses[0] < time.Second || pauses[0] > poolhealth.HoldLaunchFirst || pauses[1] <= pauses[0] {
		t.Errorf("the pauses are %v, want %s at most and a longer one", pauses, poolhealth.HoldLaunchFirst)
	}
	r.plan(t)
	r.work(t)
	r.join(t)
	r.work(t)
	if claim := findClaim(t, r); !claim.StatusConditions().IsReady() || len(r.instances()) != 1 {
		t.Errorf("%d instances; condition of the claim: %+v\n%s", len(r.instances()), claim.Status.Conditions, r.log)
	}
}
