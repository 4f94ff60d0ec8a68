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

// TestOneProbesForAll: after a shortage one launch probes whether there is capacity again; as soon as it
// succeeds, the others launch.
func TestOneProbesForAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	base := time.Now()
	zones := map[string]bool{}
	for _, o := range r.Market.Market(base)["default"].Types[0].Offerings {
		zones[o.Zone] = true
	}
	short := func(at time.Time) {
		for zone := range zones {
			r.Claims.Offers.Short(at, []ec2.Short{{CapacityType: "on-demand", InstanceType: "t3.medium", Zone: zone,
				Reason: "InsufficientCapacity"}})
		}
	}
	for _, minutes := range []int{-30, -27, -24, -21, -18} { // by now the back-off is 48 minutes
		short(base.Add(time.Duration(minutes) * time.Minute))
	}
	r.pending(t, "web", "1500m", "3Gi")
	r.pending(t, "api", "1500m", "3Gi")
	r.plan(t)
	claims := r.claims(t)
	if len(claims) != 2 {
		t.Fatalf("%d claims, want 2: none probes\n%s", len(claims), r.log)
	}
	class := testClass()
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Claims.Offers.Request(&claims[0], class, 0, base); err != nil {
		t.Errorf("the first does not probe: %v", err)
	}
	if request, err := r.Claims.Offers.Request(&claims[1], class, 0, base); !awserr.Is(err, awserr.Shortage) {
		t.Errorf("the second probes, too: %+v, %v", request, err)
	}
	for zone := range zones {
		r.Claims.Offers.Shortages.Launched(ec2.Instance{Type: "t3.medium", Zone: zone, CapacityType: "on-demand"})
	}
	if _, err := r.Claims.Offers.Request(&claims[1], class, 0, base); err != nil {
		t.Errorf("the first launch has succeeded, but the second is refused: %v", err)
	}
}

// workAtOnce reconciles all claims concurrently, each once.
func (r *rig) workAtOnce(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	for _, c := range r.claims(t) {
		all.Go(func() {
			if _, err := r.Claims.Reconcile(t.Context(), named(c.Name)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestTenMinutesOfShortage: while EC2 has no capacity for the pods it is rarely asked, and waiting pods have an event with the cause. When
// there is capacity again all get their instances soon.
func TestTenMinutesOfShortage(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium", "m5.large")
	r.classes(t)
	limits := r.estate.Region
	r.Do(func(*world.World, time.Time) { limits.Capacity.Limit(world.Pool{}, 0) })
	const pods = 12
	for i := range pods {
		r.pending(t, fmt.Sprint("web-", i), "1500m", "3Gi")
	}
	round := func() { // the five seconds between two plans
		r.plan(t)
		r.workAtOnce(t)
		r.ahead += loop.Recheck
	}
	asked := func() int { return r.Calls()["ec2:CreateFleet"] }
	round()
	if first := asked(); first == 0 || first > pods {
		t.Fatalf("%d calls for %d claims\n%s", first, pods, r.log)
	}
	first := asked()
	for last, passed := first, loop.Recheck; passed < 10*time.Minute; passed += loop.Recheck {
		round()
		if n := asked() - last; n > 1 {
			t.Errorf("after %s: %d calls at once, want one probe for all", passed, n)
		}
		last = asked()
	}
	if probes := asked() - first; probes != 3 {
		t.Errorf("%d calls in ten minutes after the first %d, want 3: a probe each 3 minutes\n%s", probes, first, r.log)
	}
	if n := r.Calls()["ec2:DescribeInstances"]; n > 0 {
		t.Errorf("%d searches for instances of claims without a launch", n)
	}
	r.drip()
	if n := len(r.instances()); n > 0 || r.events.has("Pod/FailedScheduling", string(packing.NoCapacity)) == "" {
		t.Errorf("%d instances; events %v", n, r.events.told)
	}

	r.Do(func(*world.World, time.Time) { limits.Capacity.Lift(world.Pool{}) })
	back := r.now()
	for len(r.instances()) < pods && r.now().Before(back.Add(time.Hour)) {
		round()
	}
	if took := r.now().Sub(back); took > ec2.FirstBackoff+2*loop.Recheck || len(r.instances()) != pods {
		t.Errorf("%d instances for %d pods %s after there was capacity again\n%s", len(r.instances()), pods, took, r.log)
	}
}
