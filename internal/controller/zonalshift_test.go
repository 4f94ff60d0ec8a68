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

// shiftRig is a rig whose cluster takes part in zonal shifts.
func shiftRig(t *testing.T, instanceTypes ...string) *rig {
	t.Helper()
	r := newRig(t, instanceTypes...)
	r.Do(func(_ *world.World, now time.Time) {
		made, err := r.estate.Region.EKS.CreateCluster(now, ekscluster.Cluster{Name: testCluster, ZonalShift: true})
		if err != nil || made.ARN != testClusterARN {
			t.Fatalf("%+v, %v", made, err)
		}
	})
	r.classes(t)
	return r
}

// shiftAway starts a zonal shift away from the n-th zone.
func (r *rig) shiftAway(t *testing.T, n int, lasts time.Duration) *world.ZonalShift {
	t.Helper()
	var made *world.ZonalShift
	r.Do(func(_ *world.World, now time.Time) {
		var err error
		zone := r.estate.PrivateSubnets[n].Zone.ID
		if made, err = r.estate.Region.ZonalShifts.Start(now, world.ZonalShift{Resource: testClusterARN, AwayFrom: zone}, lasts); err != nil {
			t.Fatal(err)
		}
	})
	return made
}

func (r *rig) followShifts(t *testing.T) {
	t.Helper()
	if err := r.Shifts.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
}

// TestZonalShift: nothing is launched in the zone while the shift lasts, its nodes stay, and the pools have an event. When
// the shift is cancelled the zone is used again.
func TestZonalShift(t *testing.T) {
	t.Parallel()
	r := shiftRig(t, "m5.large")
	away := r.estate.PrivateSubnets[0].Zone
	// Only two zones have subnets with free addresses, so that the plan would use the zone of the shift.
	r.alone(t, "before", 1)
	r.plan(t)
	r.work(t)
	first := r.instances()[0]
	made := r.shiftAway(t, 0, time.Hour)
	r.followShifts(t)
	if told := r.events.has("NodePool/ZonalShiftActive", away.ID, "until"); told == "" {
		t.Errorf("no event on the pool: %v", r.events.told)
	}
	r.alone(t, "during", 6)
	r.plan(t)
	r.work(t)
	for _, i := range r.instances() {
		if i.ID != first.ID && i.Zone == away.Name {
			t.Errorf("%s was launched in %s", i.ID, i.Zone)
		}
	}
	if n := len(r.instances()); n != 7 {
		t.Fatalf("%d instances, want 7\n%s", n, r.log)
	}
	told := len(r.events.told)
	r.followShifts(t)
	if len(r.events.told) != told {
		t.Errorf("reported again: %v", r.events.told[told:])
	}

	// Pods that must be there wait, and get a node when the shift is cancelled.
	pool := r.pool(t)
	pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, karpv1.Requirement{
		Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{away.Name}})
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.alone(t, "there", 1)
	r.plan(t)
	if n := len(r.claims(t)); n != 7 {
		t.Fatalf("%d claims while the only zone of the pool is shifted away from", n)
	}
	r.Do(func(*world.World, time.Time) {
		if _, err := r.estate.Region.ZonalShifts.Cancel(made.ID); err != nil {
			t.Error(err)
		}
	})
	r.followShifts(t)
	if told := r.events.has("NodePool/ZonalShiftCleared", away.ID); told == "" {
		t.Errorf("the pool is not told of the end: %v", r.events.told)
	}
	r.plan(t)
	r.work(t)
	if r.inZones()[away.Name] == 0 || len(r.instances()) != 8 {
		t.Errorf("after the shift: %v\n%s", r.inZones(), r.log)
	}
}

// TestShiftEnds: a shift ends on time even if ARC does not answer; an autoshift lasts until AWS ends it.
func TestShiftEnds(t *testing.T) {
	t.Parallel()
	r := shiftRig(t, "m5.large")
	zones := offerings.ZonesOf(r.class(t))
	r.shiftAway(t, 1, time.Hour)
	r.followShifts(t)
	closed := func(what string, want ...string) {
		t.Helper()
		if got := r.Market.Shifted.Closed(r.now(), zones); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: closed are %v, want %v", what, got, want)
		}
	}
	closed("a user's", zones[1].Name)
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "arc-zonal-shift:GetManagedResource"}}
	})
	if err := r.Shifts.Pass(t.Context(), r.now()); err == nil {
		t.Error("a denied call is no error")
	}
	closed("not allowed to ask any more", zones[1].Name)
	r.ahead = 2 * time.Hour
	closed("its time is over")
	if err := r.Shifts.Pass(t.Context(), r.now()); err == nil || r.events.has("ZonalShiftCleared") == "" {
		t.Errorf("the end of the shift is not reported: %v", err)
	}
	r.Do(func(w *world.World, now time.Time) {
		w.Faults.Denials = nil
		if err := r.estate.Region.ZonalShifts.StartAutoshift(now, testClusterARN, zones[2].ID); err != nil {
			t.Error(err)
		}
	})
	r.followShifts(t)
	closed("AWS's own", zones[2].Name)
	if r.events.has("ZonalShiftActive", zones[2].ID, "by AWS") == "" {
		t.Errorf("events: %v", r.events.told)
	}
}

// TestShiftOfOtherZones: pools that cannot launch in the zone get no event.
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
	if told := r.events.has("ZonalShift"); told != "" {
		t.Errorf("events: %s", told)
	}
	if !strings.Contains(r.log.String(), "zonal shift") {
		t.Error("the log does not report it either")
	}
}

// TestShiftedZoneIsNotSwept: instances that EC2 does not return for an impaired zone are not given up.
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
			t.Errorf("with traffic shifted away from %s: %d claims are deleted, want %d", shifted, len(out.Claims), want)
		}
	}
}
