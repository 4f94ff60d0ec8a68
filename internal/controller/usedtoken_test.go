package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// answerlessLauncher returns a timeout instead of the result of a launch. Errors that are in doubt pass unchanged.
type answerlessLauncher struct{ nodeclaim.InstanceLauncher }

func (l answerlessLauncher) Launch(ctx context.Context, request ec2.LaunchRequest) (ec2.Launch, error) {
	if _, err := l.InstanceLauncher.Launch(ctx, request); awserr.Is(err, awserr.InDoubt) {
		return ec2.Launch{}, err
	}
	return ec2.Launch{}, &awserr.Error{Op: "CreateFleet", Kind: awserr.Transient, Reason: "Timeout"}
}

// TestUpgradeDuringALaunch: a process requests the instance of a claim, and ends before the answer. After an upgrade,
// the next process sends a different request with the same client token, which EC2 rejects. If an instance was
// launched, it is found. If not, a further attempt is made with another token.
func TestUpgradeDuringALaunch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		isShort  bool // EC2 has no capacity before the last upgrade
		upgrades int
	}{
		"launched":                     {false, 1},
		"launched, upgraded twice":     {false, 2},
		"not launched":                 {true, 1},
		"not launched, upgraded twice": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.reconcileClassAndPool(t)
			pool := world.CapacityPool{Type: "t3.medium"}
			if c.isShort {
				r.Do(func(*world.World, time.Time) { r.estate.Region.Capacity.Limit(pool, 0) })
			}
			r.addPendingPod(t, "web", "500m", "512Mi")
			r.plan(t)
			claim := r.claims(t)[0].Name
			for n := range c.upgrades {
				r.Claims.Launcher = answerlessLauncher{r.Claims.Launcher}
				attempted := r.now().Add(time.Duration(n)*nodeclaim.DoubtTimeout + nodeclaim.FirstLaunchDelay) // by then, attempt n is made
				for r.now().Before(attempted) {
					r.ahead += max(r.reconcileClaim(t, claim), time.Second)
				}
				r.upgrade(t, n)
			}
			r.Do(func(*world.World, time.Time) { r.estate.Region.Capacity.RemoveLimit(pool) })
			for range 100 {
				if found := r.claim(t, claim); found == nil || found.Status.ProviderID != "" || found.DeletionTimestamp != nil {
					break
				}
				r.ahead += max(r.reconcileClaim(t, claim), time.Second)
			}
			launched := len(r.estate.Region.Instances.All())
			if found := r.claim(t, claim); found == nil || found.Status.ProviderID == "" || launched != 1 {
				t.Errorf("the claim has no instance, or %d instances were launched, want 1\n%s", launched, r.log)
			}
		})
	}
}

func (r *rig) upgrade(t *testing.T, n int) {
	t.Helper()
	class := r.class(t)
	data := fmt.Sprintf("#!/bin/bash\necho %d\n", n)
	class.Spec.UserData = &data
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.start(t)
	r.reconcileClassAndPool(t)
}
