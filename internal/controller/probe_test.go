package controller

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestOneProbesForAll: during the back-off of a shortage, one launch probes whether there is capacity again. The other
// launches wait until the probe succeeds.
func TestOneProbesForAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	base := time.Now()
	zones := map[string]bool{}
	for _, o := range r.Market.Market(base)["default"].Types[0].Offerings {
		zones[o.Zone] = true
	}
	noteShortage := func(at time.Time) {
		for zone := range zones {
			r.Claims.Offers.NoteShortages(at, []ec2.Shortage{{CapacityType: "on-demand", InstanceType: "t3.medium", Zone: zone,
				Reason: "InsufficientCapacity"}})
		}
	}
	for _, minutes := range []int{-30, -27, -24, -21, -18} { // each doubles the back-off, to 48 minutes
		noteShortage(base.Add(time.Duration(minutes) * time.Minute))
	}
	r.addPendingPod(t, "web", "1500m", "3Gi")
	r.addPendingPod(t, "api", "1500m", "3Gi")
	r.plan(t)
	claims := r.claims(t)
	if len(claims) != 2 {
		t.Fatalf("%d claims, want 2, one of which probes\n%s", len(claims), r.log)
	}
	class := testClass()
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Claims.Offers.Request(&claims[0], class, 0, base); err != nil {
		t.Errorf("the first launch does not probe: %v", err)
	}
	if request, err := r.Claims.Offers.Request(&claims[1], class, 0, base); !awserr.Is(err, awserr.Shortage) {
		t.Errorf("the second launch probes, too: %+v, %v", request, err)
	}
	for zone := range zones {
		r.Claims.Offers.Shortages.NoteLaunched(ec2.Instance{Type: "t3.medium", Zone: zone, CapacityType: "on-demand"})
	}
	if _, err := r.Claims.Offers.Request(&claims[1], class, 0, base); err != nil {
		t.Errorf("the first launch has succeeded, but the second is refused: %v", err)
	}
}

// reconcileClaimsAtOnce reconciles all claims concurrently.
func (r *rig) reconcileClaimsAtOnce(t *testing.T) {
	t.Helper()
	var workers sync.WaitGroup
	for _, c := range r.claims(t) {
		workers.Go(func() {
			if _, err := r.Claims.Reconcile(t.Context(), named(c.Name)); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
}

// TestTenMinutesOfShortage: while EC2 has no capacity, it gets few launch requests, and an event on the pods names the
// cause. Soon after EC2 has capacity again, all pods have instances.
func TestTenMinutesOfShortage(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium", "m5.large")
	r.reconcileClassAndPool(t)
	region := r.estate.Region
	r.Do(func(*world.World, time.Time) { region.Capacity.Limit(world.CapacityPool{}, 0) })
	const pods = 12
	for i := range pods {
		r.addPendingPod(t, fmt.Sprint("web-", i), "1500m", "3Gi")
	}
	round := func() { // a plan and the five seconds after it
		r.plan(t)
		r.reconcileClaimsAtOnce(t)
		r.ahead += loop.Recheck
	}
	launchCalls := func() int { return r.Calls()["ec2:CreateFleet"] }
	round()
	if first := launchCalls(); first == 0 || first > pods {
		t.Fatalf("%d calls for %d claims, want at least one, at most one each\n%s", first, pods, r.log)
	}
	first := launchCalls()
	for last, passed := first, loop.Recheck; passed < 10*time.Minute; passed += loop.Recheck {
		round()
		if n := launchCalls() - last; n > 1 {
			t.Errorf("after %s: %d calls at once, want one probe for all", passed, n)
		}
		last = launchCalls()
	}
	if probes := launchCalls() - first; probes != 3 {
		t.Errorf("%d calls in ten minutes after the first %d, want 3: a probe every 3 minutes\n%s", probes, first, r.log)
	}
	if n := r.Calls()["ec2:DescribeInstances"]; n > 0 {
		t.Errorf("%d calls of DescribeInstances for claims without instances, want none", n)
	}
	r.emitQueuedEvents()
	if n := len(r.instances()); n > 0 || r.events.find("Pod/FailedScheduling", string(packing.NoCapacity)) == "" {
		t.Errorf("%d instances, want none; events %v, want FailedScheduling", n, r.events.emitted)
	}

	r.Do(func(*world.World, time.Time) { region.Capacity.RemoveLimit(world.CapacityPool{}) })
	lifted := r.now()
	for len(r.instances()) < pods && r.now().Before(lifted.Add(time.Hour)) {
		round()
	}
	if took := r.now().Sub(lifted); took > ec2.FirstBackoff+2*loop.Recheck || len(r.instances()) != pods {
		t.Errorf("%s after capacity returned: %d instances, want %d\n%s", took, len(r.instances()), pods, r.log)
	}
}
