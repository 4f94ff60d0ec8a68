package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestUnseenInstanceIsTerminated: a claim is deleted while EC2 does not return its new instance yet. The claim stays
// until the instance is visible and terminated.
func TestUnseenInstanceIsTerminated(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"instance recorded", "instance not recorded"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.Do(func(w *world.World, _ time.Time) { w.Faults.ReadLag = 30 * time.Second })
			r.reconcileClassAndPool(t)
			r.addPendingPod(t, "web", "500m", "512Mi")
			r.plan(t)
			r.reconcileClaims(t)
			claim := onlyClaim(t, r)
			if status == "instance not recorded" {
				r.start(t) // the process ended after the launch, before it recorded the instance in the claim
				claim.Status.ProviderID = ""
				if err := r.api.Status().Update(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.api.Delete(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			deleted := r.now()
			for len(r.claims(t)) > 0 && r.now().Before(deleted.Add(5*time.Minute)) {
				r.ahead += 250 * time.Millisecond
				r.reconcileClaims(t)
			}
			if n := len(r.instances()); n > 0 || len(r.claims(t)) > 0 {
				t.Errorf("%d instances and %d claims are left, want none\n%s", n, len(r.claims(t)), r.log)
			}
		})
	}
}

// TestTerminationWhileBooting: EC2 terminates an instance before its kubelet starts. The claim is deleted, an event has
// EC2's reason, and another instance is launched after a pause. The pause is longer the second time.
func TestTerminationWhileBooting(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	reason := "Client.InternalError: Client error on launch"
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.BootFaults = []*world.BootFault{{Count: 2, Fail: world.Reason{Code: "Client.InternalError", Message: reason}}}
	})
	r.addPendingPod(t, "web", "500m", "512Mi")
	var pauses []time.Duration
	for range 2 {
		r.plan(t)
		r.reconcileClaims(t)
		if n := len(r.claims(t)); n != 1 {
			t.Fatalf("%d claims for one pod, want 1\n%s", n, r.log)
		}
		died := onlyClaim(t, r).Status.ProviderID
		r.ahead += 2 * time.Minute
		r.Do(func(*world.World, time.Time) {}) // advances AWS to the new time
		if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
		r.finishDeleted(t)
		if n := len(r.claims(t)); n != 0 {
			t.Fatalf("%d claims of the terminated instance are left, want none\n%s", n, r.log)
		}
		if r.events.find("NodeClaim/NodeNotJoining", died, reason) == "" {
			t.Errorf("no event names the instance and EC2's reason: %v", r.events.emitted)
		}
		until, cause := r.Provisioner.LaunchBackoff.Held(r.now(), "apps")
		if !strings.Contains(cause, reason) {
			t.Errorf("the pool is on hold until %s because of %q, want EC2's reason", until, cause)
		}
		r.plan(t)
		if n := len(r.claims(t)); n != 0 {
			t.Errorf("%d claims are created before the pause ends, want none", n)
		}
		pauses = append(pauses, until.Sub(r.now()).Round(time.Second))
		r.ahead = time.Until(until) + time.Second
	}
	if pauses[0] < time.Second || pauses[0] > poolhealth.FirstLaunchPause || pauses[1] <= pauses[0] {
		t.Errorf("the pauses are %v, want at most %s, and then a longer one", pauses, poolhealth.FirstLaunchPause)
	}
	r.plan(t)
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	if claim := onlyClaim(t, r); !claim.StatusConditions().IsReady() || len(r.instances()) != 1 {
		t.Errorf("%d instances, want 1; the conditions of the claim are %+v, want ready\n%s", len(r.instances()), claim.Status.Conditions, r.log)
	}
}
