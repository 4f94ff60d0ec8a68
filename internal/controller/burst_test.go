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

// TestBurst requests more nodes at once than EC2 lets it launch: most launches are throttled for much longer than one
// launch may take. Each claim gets its instance in the end. No claim is deleted and created again because of the wait.
func TestBurst(t *testing.T) {
	t.Parallel()
	embedded(t) // loads the table that the synctest bubbles share
	for name, c := range map[string]struct {
		nodes   int
		limits  ratelimit.Limits
		minWait time.Duration // until all instances are launched
	}{
		// Like 2,000 nodes at EC2's default of 5 launches a second: the last one is launched after about 400 s.
		"a large burst": {500, slower(12, 1.25), 6 * time.Minute},
		// All claims are reconciled at once, and most of them wait for longer than one reconciliation may take.
		"a slow account": {150, slower(5, 0.15), 16 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := makeRig(t, []string{"m5.large"})
				r.url, r.transport, r.limiter = "http://aws.example", fusedTransport{rig: r, fuse: r.fuse}, ratelimit.New(c.limits, nil)
				r.start(t)
				r.Do(func(w *world.World, _ time.Time) { w.Faults.Throttle = world.EC2Throttle() })
				r.reconcileClassAndPool(t)
				for n := range c.nodes {
					r.addPendingPod(t, fmt.Sprint("web-", n), "1500m", "1Gi")
				}
				r.plan(t)
				start := time.Now()
				r.launchAll(t)
				launched := 0
				for _, claim := range r.claims(t) {
					if claim.Status.ProviderID != "" && claim.DeletionTimestamp == nil {
						launched++
					}
				}
				if launched != c.nodes || len(r.instances()) != c.nodes {
					t.Errorf("%d claims have an instance, and EC2 has %d; want %d", launched, len(r.instances()), c.nodes)
				}
				if took := time.Since(start); took < c.minWait {
					t.Errorf("the launches took only %s, want at least %s: EC2 did not throttle them", took, c.minWait)
				}
			})
		})
	}
}

// slower returns EC2's limits for an account with a lower launch rate.
func slower(burst, perSecond float64) ratelimit.Limits {
	return ratelimit.Published().With(ratelimit.Limits{"CreateFleet": {Burst: burst, PerSecond: perSecond}})
}

// launchAll reconciles all claims with as many workers as the controller has. It reconciles a claim again at the time
// that the last reconcile returned, and once more when the claim has its instance or is being deleted.
func (r *rig) launchAll(t *testing.T) {
	t.Helper()
	claims := r.claims(t)
	queue := make(chan string, 2*len(claims))
	var unfinished, workers sync.WaitGroup
	for _, c := range claims {
		unfinished.Add(1)
		queue <- c.Name
	}
	for range claimWorkers {
		workers.Go(func() {
			for name := range queue {
				pause, isDone := r.reconcileOne(t, name)
				switch {
				case isDone:
					unfinished.Done()
				case pause > 0:
					time.AfterFunc(pause, func() { queue <- name })
				default:
					queue <- name
				}
			}
		})
	}
	unfinished.Wait()
	close(queue)
	workers.Wait()
}

// reconcileOne reconciles a claim, and returns the pause until the next reconcile. isDone reports whether the claim is
// gone, is being deleted, or had its instance before.
func (r *rig) reconcileOne(t *testing.T, name string) (pause time.Duration, isDone bool) {
	claim, err := r.Claims.Read(t.Context(), name)
	if claim == nil || err != nil {
		return 0, true
	}
	isDone = claim.Status.ProviderID != "" || claim.DeletionTimestamp != nil
	ctx, stop := context.WithTimeout(t.Context(), loop.ReconcileTimeout)
	defer stop()
	result, err := r.Claims.Reconcile(ctx, named(name))
	if err != nil {
		t.Errorf("reconcile %s: %v", name, err)
	}
	if after := r.Claims.Newest.Of(claim); after.Status.ProviderID != "" {
		return 0, isDone // the write of the provider ID triggers the next reconcile
	}
	return result.RequeueAfter, isDone
}
