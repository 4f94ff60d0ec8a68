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

// deaf is EC2 behind a connection that loses the final answers of launch attempts, successful or not.
type deaf struct{ nodeclaim.InstanceLauncher }

func (d deaf) Launch(ctx context.Context, request ec2.LaunchRequest) (ec2.Launch, error) {
	if _, err := d.InstanceLauncher.Launch(ctx, request); awserr.Is(err, awserr.InDoubt) {
		return ec2.Launch{}, err
	}
	return ec2.Launch{}, &awserr.Error{Op: "CreateFleet", Kind: awserr.Transient, Reason: "Timeout"}
}

// TestUpgradeInTheMiddleOfALaunch: a process has requested the claim's instance and ended before the answer. The next ones send
// another request, as after an upgrade or a change of the class, so that EC2 rejects the reused client token. A launched
// instance is found, and without one the next attempt is made, as often as needed.
func TestUpgradeInTheMiddleOfALaunch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		isShort  bool // EC2 has no capacity while answers are lost
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
			r.classes(t)
			pool := world.Pool{Type: "t3.medium"}
			if c.isShort {
				r.Do(func(*world.World, time.Time) { r.estate.Region.Capacity.Limit(pool, 0) })
			}
			r.pending(t, "web", "500m", "512Mi")
			r.plan(t)
			claim := r.claims(t)[0].Name
			for n := range c.upgrades {
				r.Claims.Launcher = deaf{r.Claims.Launcher}
				until := r.now().Add(time.Duration(n)*nodeclaim.DoubtFor + nodeclaim.LaunchFirst) // until the n-th attempt
				for r.now().Before(until) {
					r.ahead += max(r.visit(t, claim), time.Second)
				}
				r.upgrade(t, n)
			}
			r.Do(func(*world.World, time.Time) { r.estate.Region.Capacity.Lift(pool) })
			for range 100 {
				if found := r.claim(t, claim); found == nil || found.Status.ProviderID != "" || found.DeletionTimestamp != nil {
					break
				}
				r.ahead += max(r.visit(t, claim), time.Second)
			}
			if found := r.claim(t, claim); found == nil || found.Status.ProviderID == "" || len(r.estate.Region.Instances.All()) != 1 {
				t.Errorf("the claim has no instance, or %d were launched\n%s", len(r.estate.Region.Instances.All()), r.log)
			}
		})
	}
}

// upgrade changes the template of nodes, and restarts with an empty memory.
func (r *rig) upgrade(t *testing.T, n int) {
	t.Helper()
	class := r.class(t)
	data := fmt.Sprintf("#!/bin/bash\necho %d\n", n)
	class.Spec.UserData = &data
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.start(t)
	r.classes(t)
}
