package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// reservedRig returns a rig whose class selects the capacity reservations of team a, and whose pool allows reserved and
// on-demand capacity. It also returns the reservation that it creates, for total instances of m5.large. change may set
// further fields of the reservation.
func reservedRig(t *testing.T, total int, change func(*world.CapacityReservation)) (*rig, *world.CapacityReservation) {
	t.Helper()
	r := newRig(t, "m5.large", "m5.xlarge")
	request := world.CapacityReservation{Type: "m5.large", Zone: r.estate.PrivateSubnets[1].Zone, Total: total,
		Criteria: "targeted", Tags: map[string]string{"team": "a"}}
	change(&request)
	var reservation *world.CapacityReservation
	r.Do(func(_ *world.World, now time.Time) {
		var err error
		if reservation, err = r.estate.Region.CapacityReservations.Create(now, request); err != nil {
			t.Fatal(err)
		}
	})
	class, pool := r.class(t), r.pool(t)
	class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "a"}}}
	pool.Spec.Template.Spec.Requirements[0].Values = []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeReserved}
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.reconcileClassAndPool(t)
	return r, reservation
}

// countByReservation counts the instances, by "type reservation"; without a reservation, by "type ".
func (r *rig) countByReservation() map[string]int {
	out := map[string]int{}
	for _, i := range r.instances() {
		out[i.Type+" "+i.CapacityReservationID]++
	}
	return out
}

// TestReservedFirst: reserved capacity is used first, regardless of on-demand prices. Pods that do not fit there get
// on-demand instances.
func TestReservedFirst(t *testing.T) {
	t.Parallel()
	r, reservation := reservedRig(t, 2, func(*world.CapacityReservation) {})
	class := r.class(t)
	want := []awsv1.CapacityReservation{{ID: reservation.ID, AvailabilityZone: reservation.Zone.Name, InstanceMatchCriteria: "targeted",
		InstanceType: "m5.large",
		OwnerID:      reservation.Owner, ReservationType: awsv1.CapacityReservationDefault, State: awsv1.CapacityReservationActive}}
	if diff := cmp.Diff(want, class.Status.CapacityReservations); diff != "" ||
		!class.StatusConditions().IsTrue(awsv1.ConditionCapacityReservationsReady) {
		t.Fatalf("status (-want +got):\n%s\n%+v", diff, class.Status.Conditions)
	}
	for n := range 2 {
		r.addPendingPod(t, fmt.Sprintf("web-%d", n), "1500m", "2Gi")
		r.plan(t)
	}
	if n := len(r.claims(t)); n != 2 {
		t.Fatalf("%d claims for two pods, one after the other; want 2", n)
	}
	r.reconcileClaims(t)
	if diff := cmp.Diff(map[string]int{"m5.large " + reservation.ID: 2}, r.countByReservation()); diff != "" {
		t.Fatalf("instances for the first two pods (-want +got):\n%s\n%s", diff, r.log)
	}
	claim := r.claims(t)[0]
	for key, value := range map[string]string{
		karpv1.LabelCapacityType: karpv1.CapacityTypeReserved, awsv1.LabelCapacityReservationID: reservation.ID,
		awsv1.LabelCapacityReservationType: "default", awsv1.LabelCapacityReservationInterruptible: "false",
		corev1.LabelTopologyZone: reservation.Zone.Name,
	} {
		if claim.Labels[key] != value {
			t.Errorf("label %s of the claim is %q, want %q", key, claim.Labels[key], value)
		}
	}
	r.join(t)
	r.reconcileClaims(t)
	if id := r.nodes(t)[0].Labels[awsv1.LabelCapacityReservationID]; id != reservation.ID {
		t.Errorf("the Node is labelled with reservation %q, want %s", id, reservation.ID)
	}

	// The reservation is full, but the last answer of EC2 that the controller has read shows two free instances.
	r.addPendingPod(t, "web-2", "1500m", "2Gi")
	r.addPendingPod(t, "web-3", "1500m", "2Gi")
	r.plan(t)
	r.reconcileClaims(t)
	if got := r.countByReservation(); got["m5.large "+reservation.ID] != 2 || got["m5.large "]+got["m5.xlarge "] == 0 {
		t.Errorf("with a full reservation, instances by type and reservation are %v, want 2 in the reservation, and others\n%s", got, r.log)
	}
}

// TestReservationVanishes: if a reservation ends before the launch planned for it, an on-demand instance is launched.
func TestReservationVanishes(t *testing.T) {
	t.Parallel()
	r, reservation := reservedRig(t, 1, func(*world.CapacityReservation) {})
	r.addPendingPod(t, "web", "1500m", "2Gi")
	r.plan(t)
	r.Do(func(_ *world.World, now time.Time) {
		if err := r.estate.Region.CapacityReservations.Cancel(now, reservation.ID); err != nil {
			t.Error(err)
		}
	})
	for range 4 { // the launch fails, its claim is deleted, and a new plan does not use the reservation
		r.reconcileClaims(t)
		r.plan(t)
	}
	r.reconcileClaims(t)
	if diff := cmp.Diff(map[string]int{"m5.large ": 1}, r.countByReservation()); diff != "" {
		t.Errorf("instances by type and reservation (-want +got):\n%s\n%s", diff, r.log)
	}
	if event := r.events.find("InsufficientCapacity"); !strings.Contains(event, "reserved capacity for m5.large in "+reservation.Zone.Name) {
		t.Errorf("the event is %q, want it to name the reserved capacity", event)
	}
}

// TestReservationEnds: a node whose reservation ends keeps running as on-demand, and its label says on-demand. The
// class no longer lists the reservation.
func TestReservationEnds(t *testing.T) {
	t.Parallel()
	r, reservation := reservedRig(t, 1, func(*world.CapacityReservation) {})
	r.addPendingPod(t, "web", "1500m", "2Gi")
	r.plan(t)
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	sweep := func() {
		if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if capacityType := r.claims(t)[0].Labels[karpv1.LabelCapacityType]; capacityType != karpv1.CapacityTypeReserved {
		t.Fatalf("before the reservation ends, the capacity type of the claim is %s, want reserved", capacityType)
	}
	r.Do(func(_ *world.World, now time.Time) {
		if err := r.estate.Region.CapacityReservations.Cancel(now, reservation.ID); err != nil {
			t.Error(err)
		}
	})
	sweep()
	for name, labels := range map[string]map[string]string{"claim": r.claims(t)[0].Labels, "Node": r.nodes(t)[0].Labels} {
		for _, key := range offerings.ReservationKeys() {
			if _, ok := labels[key]; ok {
				t.Errorf("the %s still has label %s", name, key)
			}
		}
		if labels[karpv1.LabelCapacityType] != karpv1.CapacityTypeOnDemand {
			t.Errorf("the capacity type of the %s is %s, want on-demand", name, labels[karpv1.LabelCapacityType])
		}
	}
	if n := len(r.instances()); n != 1 {
		t.Errorf("%d instances, want 1", n)
	}
	r.reconcileClassAndPool(t)
	if left := r.class(t).Status.CapacityReservations; len(left) != 0 {
		t.Errorf("the class still shows %+v", left)
	}
}

// TestBlockEnds: 40 minutes before a capacity block ends, its node is replaced and drained, without an interruption
// message. No instance is launched into the block after that.
func TestBlockEnds(t *testing.T) {
	t.Parallel()
	r, reservation := reservedRig(t, 2, func(c *world.CapacityReservation) { c.Kind, c.End = "capacity-block", time.Now().Add(48*time.Hour) })
	r.withQueue(t)
	r.addPendingPod(t, "web", "1500m", "2Gi")
	r.plan(t)
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	r.bind(t)
	if diff := cmp.Diff(map[string]int{"m5.large " + reservation.ID: 1}, r.countByReservation()); diff != "" {
		t.Fatalf("instances by type and reservation (-want +got):\n%s\n%s", diff, r.log)
	}
	old := r.claims(t)[0].Name
	r.Do(func(_ *world.World, now time.Time) { reservation.End = now.Add(39 * time.Minute) })
	r.reconcileClassAndPool(t)
	if state := r.class(t).Status.CapacityReservations[0].State; state != awsv1.CapacityReservationExpiring {
		t.Fatalf("39 minutes before its end the block is %s, want expiring", state)
	}
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.drainPass(t)
		r.plan(t)
	}
	r.reconcileClaims(t)
	if !r.isLeaving(t, old) {
		t.Errorf("the claim in the block is not deleted\n%s", r.log)
	}
	if got := r.countByReservation(); got["m5.large "] != 1 {
		t.Errorf("there is no on-demand replacement: %v\n%s", got, r.log)
	}
}

// TestReservationsDenied: if the permission to read the reservations that a class selects is missing, a condition
// reports it, and the class is not ready.
func TestReservationsDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.large")
	class := r.class(t)
	class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-0123456789abcdef0"}}
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "ec2:DescribeCapacityReservations"}}
	})
	r.reconcileClassAndPool(t)
	conditions := r.class(t).StatusConditions()
	got, _ := conditions.Find(awsv1.ConditionCapacityReservationsReady)
	if got.Status != "False" || !strings.Contains(got.Message, "DescribeCapacityReservations") || conditions.IsReady() {
		t.Errorf("without the permission: %+v, ready %t; want False and false", got, conditions.IsReady())
	}
	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = nil })
	r.reconcileClassAndPool(t) // no reservation has this ID, which is no error
	if conditions = r.class(t).StatusConditions(); !conditions.IsReady() {
		t.Errorf("with the permission, the class is not ready: %+v", r.class(t).Status.Conditions)
	}
}

// TestReservedBook: a launched instance uses up one instance of its reservation from the launch on, even if EC2 counts
// the instance late.
func TestReservedBook(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	reservations := func(left int) []ec2.Reservation {
		return []ec2.Reservation{{ReservedCapacity: catalog.ReservedCapacity{Reservation: catalog.Reservation{ID: "cr-1", Left: left}}}}
	}
	var b offerings.ReservedBook
	wantLeft := func(what string, want int) {
		if got := b.Left()["cr-1"]; got != want {
			t.Errorf("%s: %d left, want %d", what, got, want)
		}
	}
	if more := b.Update(now, reservations(5)); len(more) != 1 {
		t.Errorf("IDs of the reservations that have more left, at first: %v, want one", more)
	}
	b.AddLaunch(now, "cr-1")
	b.AddLaunch(now, "cr-1")
	b.AddLaunch(now, "cr-2") // a reservation that the book does not have
	wantLeft("two were launched", 3)
	b.Update(now.Add(time.Second), reservations(5))
	wantLeft("EC2 counts none of them", 3)
	b.Update(now.Add(2*time.Second), reservations(4))
	wantLeft("EC2 counts one", 3)
	b.Update(now.Add(3*time.Second), reservations(2))
	wantLeft("EC2 counts both, and one of another user", 2)
	if more := b.Update(now.Add(4*time.Second), reservations(3)); len(more) != 1 {
		t.Errorf("IDs of the reservations that have more left, after one instance was terminated: %v, want one", more)
	}
	b.AddLaunch(now.Add(5*time.Second), "cr-1")
	b.Update(now.Add(5*time.Second+offerings.MaxReservationDelay), reservations(3))
	wantLeft("EC2 has had a minute to count the last launch, and another instance was terminated", 3)
	b.Update(now.Add(2*offerings.ReservationRetention), nil)
	if len(b.Left()) != 0 {
		t.Errorf("no class selects the reservation any more, but the book has %v", b.Left())
	}
}

// TestChooseReserved: Choose prefers reservations to all other offerings. It returns reservations of one kind only
// (default, capacity block, interruptible), and in each zone the one with the most instances left.
func TestChooseReserved(t *testing.T) {
	t.Parallel()
	instanceType := func(name string, price catalog.Price, reserved ...catalog.ReservedCapacity) catalog.Type {
		out := catalog.Type{Name: name, Labels: requirements.Labels{catalog.LabelInstanceType: name}}
		for _, zone := range []string{"x", "y"} {
			out.Offerings = append(out.Offerings, catalog.Offering{Zone: zone, CapacityType: catalog.OnDemand, Price: price, Available: true},
				catalog.Offering{Zone: zone, CapacityType: catalog.Spot, Price: price / 2, Available: true})
		}
		for i := range reserved {
			reserved[i].InstanceType = name
		}
		return out.WithReserved(nil, reserved)
	}
	reservation := func(id, zone string, left int, kind catalog.Reservation) catalog.ReservedCapacity {
		kind.ID, kind.Left = id, left
		return catalog.ReservedCapacity{Reservation: kind, Zone: zone}
	}
	block, plain := catalog.Reservation{Type: catalog.ReservationBlock}, catalog.Reservation{}
	types := []catalog.Type{
		instanceType("a", 100*catalog.Dollar, reservation("cr-1", "x", 1, plain), reservation("cr-2", "x", 3, plain),
			reservation("cr-3", "y", 2, plain), reservation("cr-4", "y", 0, plain)),
		instanceType("b", 200*catalog.Dollar, reservation("cr-5", "x", 9, block), reservation("cr-6", "y", 9, block)),
		instanceType("c", 300*catalog.Dollar, reservation("cr-7", "x", 9, catalog.Reservation{Interruptible: true}),
			reservation("cr-8", "y", 9, plain)),
	}
	requires := func(key string, values ...string) requirements.Requirement {
		return requirements.Requirement{Key: key, Operator: requirements.In, Values: values}
	}
	for name, c := range map[string]struct {
		required        []requirements.Requirement
		excludeReserved bool
		want            string // capacity type: type/zone=reservation …
	}{
		"anything":        {want: "reserved: a/x=cr-2 a/y=cr-3 c/y=cr-8"},
		"one reservation": {required: []requirements.Requirement{requires(catalog.LabelReservationID, "cr-1")}, want: "reserved: a/x=cr-1"},
		"a capacity block": {required: []requirements.Requirement{requires(catalog.LabelReservationType, catalog.ReservationBlock)},
			want: "reserved: b/x=cr-5"},
		"an interruptible reservation": {required: []requirements.Requirement{requires(catalog.LabelReservationInterruptible, "true")},
			want: "reserved: c/x=cr-7"},
		"a full reservation":     {required: []requirements.Requirement{requires(catalog.LabelReservationID, "cr-4")}, want: "on-demand:"},
		"an unknown reservation": {required: []requirements.Requirement{requires(catalog.LabelReservationID, "cr-9")}, want: "on-demand:"},
		"no reservation": {required: []requirements.Requirement{{Key: catalog.LabelReservationID, Operator: requirements.DoesNotExist},
			requires(catalog.LabelInstanceType, "a")},
			want: "spot: a/x= a/y="},
		"reservations excluded": {excludeReserved: true, required: []requirements.Requirement{requires(catalog.LabelInstanceType, "a")},
			want: "spot: a/x= a/y="},
	} {
		accepted, invalid := requirements.All(c.required...)
		if invalid != nil {
			t.Fatal(invalid)
		}
		capacityType, picks := offerings.Choose(types,
			offerings.LaunchRequirements{Accepted: accepted, ExcludeReserved: c.excludeReserved, Subnets: map[string]vpc.Subnet{"x": {}, "y": {}}})
		got := capacityType + ":"
		for _, p := range picks {
			got += fmt.Sprintf(" %s/%s=%s", p.Type.Name, p.Offering.Zone, p.Offering.Reservation.ID)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
