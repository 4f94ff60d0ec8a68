package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/controller/gc"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

func shiftRig(t *testing.T, instanceTypes ...string) *rig {
	t.Helper()
	r := newRig(t, instanceTypes...)
	r.Do(func(_ *world.World, now time.Time) {
		cluster, err := r.estate.Region.EKS.CreateCluster(now, ekscluster.Cluster{Name: testCluster, ZonalShift: true})
		if err != nil || cluster.ARN != testClusterARN {
			t.Fatalf("the created cluster is %+v, %v", cluster, err)
		}
	})
	r.reconcileClassAndPool(t)
	return r
}

func (r *rig) shiftAway(t *testing.T, n int, lasts time.Duration) *world.ZonalShift {
	t.Helper()
	var shift *world.ZonalShift
	r.Do(func(_ *world.World, now time.Time) {
		var err error
		zone := r.estate.PrivateSubnets[n].Zone.ID
		if shift, err = r.estate.Region.ZonalShifts.Start(now, world.ZonalShift{Resource: testClusterARN, AwayFrom: zone}, lasts); err != nil {
			t.Fatal(err)
		}
	})
	return shift
}

func (r *rig) followShifts(t *testing.T) {
	t.Helper()
	if err := r.Shifts.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
}

// TestZonalShift: during a zonal shift, no instance is launched in the zone, the nodes in the zone stay, and an event
// on the pool reports the shift. When the shift is cancelled, the zone is used again.
func TestZonalShift(t *testing.T) {
	t.Parallel()
	r := shiftRig(t, "m5.large")
	away := r.estate.PrivateSubnets[0].Zone
	r.addLargePods(t, "before", 1)
	r.plan(t)
	r.reconcileClaims(t)
	first := r.instances()[0]
	shift := r.shiftAway(t, 0, time.Hour)
	r.followShifts(t)
	if r.events.find("NodePool/ZonalShiftActive", away.ID, "until") == "" {
		t.Errorf("no event on the pool reports the shift: %v", r.events.emitted)
	}
	r.addLargePods(t, "during", 6)
	r.plan(t)
	r.reconcileClaims(t)
	for _, i := range r.instances() {
		if i.ID != first.ID && i.Zone == away.Name {
			t.Errorf("%s was launched in %s, the zone of the shift", i.ID, i.Zone)
		}
	}
	if n := len(r.instances()); n != 7 {
		t.Fatalf("%d instances, want 7\n%s", n, r.log)
	}
	emitted := len(r.events.emitted)
	r.followShifts(t)
	if len(r.events.emitted) != emitted {
		t.Errorf("further events for the same shift: %v", r.events.emitted[emitted:])
	}

	// A pod that can only be placed in the zone waits, and gets a node when the shift is cancelled.
	pool := r.pool(t)
	pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, karpv1.Requirement{
		Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{away.Name}})
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.addLargePods(t, "there", 1)
	r.plan(t)
	if n := len(r.claims(t)); n != 7 {
		t.Fatalf("%d claims during a shift away from the only zone of the pool, want 7", n)
	}
	r.Do(func(*world.World, time.Time) {
		if _, err := r.estate.Region.ZonalShifts.Cancel(shift.ID); err != nil {
			t.Error(err)
		}
	})
	r.followShifts(t)
	if r.events.find("NodePool/ZonalShiftCleared", away.ID) == "" {
		t.Errorf("no event on the pool reports the end of the shift: %v", r.events.emitted)
	}
	r.plan(t)
	r.reconcileClaims(t)
	if r.countByZone()[away.Name] == 0 || len(r.instances()) != 8 {
		t.Errorf("instances by zone after the shift: %v, want 8, also in the zone of the shift\n%s", r.countByZone(), r.log)
	}
}

// TestShiftEnds: a shift ends on time even if it cannot be read from ARC. An autoshift closes its zone too.
func TestShiftEnds(t *testing.T) {
	t.Parallel()
	r := shiftRig(t, "m5.large")
	zones := offerings.ZonesOf(r.class(t))
	r.shiftAway(t, 1, time.Hour)
	r.followShifts(t)
	wantClosed := func(what string, want ...string) {
		t.Helper()
		if got := r.Market.Shifted.Closed(r.now(), zones); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: closed zones are %v, want %v", what, got, want)
		}
	}
	wantClosed("a user's shift", zones[1].Name)
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "arc-zonal-shift:GetManagedResource"}}
	})
	if err := r.Shifts.Pass(t.Context(), r.now()); err == nil {
		t.Error("a denied call returns no error")
	}
	wantClosed("the shift cannot be read any more", zones[1].Name)
	r.ahead = 2 * time.Hour
	wantClosed("the time of the shift is over")
	if err := r.Shifts.Pass(t.Context(), r.now()); err == nil || r.events.find("ZonalShiftCleared") == "" {
		t.Errorf("no event reports the end of the shift, or the denied call returns no error: %v", err)
	}
	r.Do(func(w *world.World, now time.Time) {
		w.Faults.Denials = nil
		if err := r.estate.Region.ZonalShifts.StartAutoshift(now, testClusterARN, zones[2].ID); err != nil {
			t.Error(err)
		}
	})
	r.followShifts(t)
	wantClosed("an autoshift", zones[2].Name)
	if r.events.find("ZonalShiftActive", zones[2].ID, "by AWS") == "" {
		t.Errorf("no event reports the autoshift: %v", r.events.emitted)
	}
}

// TestShiftOfOtherZones: a pool that cannot launch in the zone of a shift gets no event.
func TestShiftOfOtherZones(t *testing.T) {
	t.Parallel()
	r := shiftRig(t, "m5.large")
	pool := r.pool(t)
	pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, karpv1.Requirement{
		Key: catalog.LabelZoneID, Operator: corev1.NodeSelectorOpNotIn, Values: []string{r.estate.PrivateSubnets[2].Zone.ID}})
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.shiftAway(t, 2, time.Hour)
	r.followShifts(t)
	if event := r.events.find("ZonalShift"); event != "" {
		t.Errorf("the pool gets the event %s, want none", event)
	}
	if !strings.Contains(r.log.String(), "zonal shift") {
		t.Error("the log does not report the shift")
	}
}

// TestShiftedZoneIsNotSwept: during a zonal shift, the sweep does not delete a claim in the zone although EC2 does not
// return its instance.
func TestShiftedZoneIsNotSwept(t *testing.T) {
	t.Parallel()
	claim := karpv1.NodeClaim{}
	claim.Name, claim.Labels = "web", map[string]string{catalog.LabelZoneID: "use1-az1"}
	claim.Status.ProviderID = "aws:///us-east-1a/i-0123456789abcdef0"
	claim.Spec.NodeClassRef = testPool().Spec.Template.Spec.NodeClassRef
	claim.StatusConditions().SetTrue(time.Now().Add(-time.Hour), karpv1.ConditionLaunched)
	m := &offerings.Catalogs{}
	for shifted, want := range map[string]int{"use1-az1": 0, "use1-az2": 1} {
		m.Shifted.Set([]eks.Shift{{ZoneID: shifted}})
		out := gc.Sweep(gc.SweepInput{Claims: []*karpv1.NodeClaim{&claim}, Shifted: m.ShiftedZones(time.Now()), Now: time.Now()})
		if len(out.Claims) != want {
			t.Errorf("with a shift away from %s, %d claims are deleted, want %d", shifted, len(out.Claims), want)
		}
	}
}
