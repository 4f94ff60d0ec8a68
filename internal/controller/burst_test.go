package controller

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joiner-sh/joiner/internal/aws/ratelimit"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestBurst requests more nodes at once than EC2 lets it launch: most launches are throttled for much longer than one launch may take. Each
// claim gets its instance in the end, and no claim is given up and created again because of the wait.
func TestBurst(t *testing.T) {
	t.Parallel()
	embedded(t) // loads the embedded table before the synctest bubbles, which share it
	for name, c := range map[string]struct {
		nodes  int
		limits ratelimit.Limits
		lasts  time.Duration // minimum duration of the burst
	}{
		// Like 2,000 nodes at EC2's default of 5 launches a second: the last one is launched after 500 s.
		"a large burst": {500, slower(12, 1.25), 6 * time.Minute},
		// All workers together wait for longer than one reconciliation may take.
		"a slow account": {150, slower(5, 0.15), 16 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := makeRig(t, []string{"m5.large"})
				r.url, r.wire, r.budget = "http://aws.example", line{rig: r, fuse: r.fuse}, ratelimit.New(c.limits, nil)
				r.start(t)
				r.Do(func(w *world.World, _ time.Time) { w.Faults.Throttle = world.EC2Throttle() })
				r.classes(t)
				for n := range c.nodes {
					r.pending(t, fmt.Sprint("web-", n), "1500m", "1Gi")
				}
				r.plan(t)
				begun := time.Now()
				r.launchAll(t)
				bought := 0
				for _, claim := range r.claims(t) {
					if claim.Status.ProviderID != "" && claim.DeletionTimestamp == nil {
						bought++
					}
				}
				if bought != c.nodes || len(r.instances()) != c.nodes {
					t.Errorf("%d claims of %d have an instance, and there are %d instances", bought, c.nodes, len(r.instances()))
				}
				if took := time.Since(begun); took < c.lasts {
					t.Errorf("it took only %s: no launch was throttled", took)
				}
			})
		})
	}
}

// slower returns EC2's limits for an account with a lower launch rate.
func slower(burst, perSecond float64) ratelimit.Limits {
	return ratelimit.Published().With(ratelimit.Limits{"CreateFleet": {Burst: burst, PerSecond: perSecond}})
}

// launchAll reconciles all claims with as many workers as the controller has. It reconciles a claim again when the claim
// asks for that, and once more when the claim has its instance or is deleted.
func (r *rig) launchAll(t *testing.T) {
	t.Helper()
	claims := r.claims(t)
	queue := make(chan string, 2*len(claims))
	var open, workers sync.WaitGroup
	for _, c := range claims {
		open.Add(1)
		queue <- c.Name
	}
	for range claimWorkers {
		workers.Go(func() {
			for name := range queue {
				pause, isDone := r.visitOnce(t, name)
				switch {
				case isDone:
					open.Done()
				case pause > 0:
					time.AfterFunc(pause, func() { queue <- name })
				default:
					queue <- name
				}
			}
		})
	}
	open.Wait()
	close(queue)
	workers.Wait()
}

// visitOnce reconciles a claim. It is done if it had its instance before, or is being deleted.
func (r *rig) visitOnce(t *testing.T, name string) (pause time.Duration, isDone bool) {
	claim, err := r.Claims.Read(t.Context(), name)
	if claim == nil || err != nil {
		return 0, true
	}
	isDone = claim.Status.ProviderID != "" || claim.DeletionTimestamp != nil
	ctx, stop := context.WithTimeout(t.Context(), loop.ReconcileTimeout)
	defer stop()
	result, err := r.Claims.Reconcile(ctx, named(name))
	if err != nil {
		t.Errorf("visit %s: %v", name, err)
	}
	if after := r.Claims.Newest.Of(claim); after.Status.ProviderID != "" {
		return 0, isDone // its change leads back to it
	}
	return result.RequeueAfter, isDone
}
