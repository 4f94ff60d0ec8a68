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

// reservedRig is a rig whose class selects the capacity reservations of team a, and whose pool allows reserved and
// on-demand capacity. It has a reservation of total m5.large, which the test may change first.
func reservedRig(t *testing.T, total int, change func(*world.CapacityReservation)) (*rig, *world.CapacityReservation) {
	t.Helper()
	r := newRig(t, "m5.large", "m5.xlarge")
	q := world.CapacityReservation{Type: "m5.large", Zone: r.estate.PrivateSubnets[1].Zone, Total: total,
		Criteria: "targeted", Tags: map[string]string{"team": "a"}}
	change(&q)
	var made *world.CapacityReservation
	r.Do(func(_ *world.World, now time.Time) {
		var err error
		if made, err = r.estate.Region.CapacityReservations.Create(now, q); err != nil {
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
	r.classes(t)
	return r, made
}

// running returns the number of running instances by type and reservation.
func (r *rig) running() map[string]int {
	out := map[string]int{}
	for _, i := range r.instances() {
		out[i.Type+" "+i.CapacityReservationID]++
	}
	return out
}

// TestReservedFirst: pods go to reserved capacity first, whatever its on-demand price would be, and then to on-demand.
func TestReservedFirst(t *testing.T) {
	t.Parallel()
	r, made := reservedRig(t, 2, func(*world.CapacityReservation) {})
	class := r.class(t)
	want := []awsv1.CapacityReservation{{ID: made.ID, AvailabilityZone: made.Zone.Name, InstanceMatchCriteria: "targeted",
		InstanceType: "m5.large",
		OwnerID:      made.Owner, ReservationType: awsv1.CapacityReservationDefault, State: awsv1.CapacityReservationActive}}
	if diff := cmp.Diff(want, class.Status.CapacityReservations); diff != "" ||
		!class.StatusConditions().IsTrue(awsv1.ConditionCapacityReservationsReady) {
		t.Fatalf("status (-want +got):\n%s\n%+v", diff, class.Status.Conditions)
	}
	for n := range 2 {
		r.pending(t, fmt.Sprintf("web-%d", n), "1500m", "2Gi")
		r.plan(t)
	}
	if n := len(r.claims(t)); n != 2 {
		t.Fatalf("%d claims for two pods, one after the other", n)
	}
	r.work(t)
	if diff := cmp.Diff(map[string]int{"m5.large " + made.ID: 2}, r.running()); diff != "" {
		t.Fatalf("the first two pods (-want +got):\n%s\n%s", diff, r.log)
	}
	claim := r.claims(t)[0]
	for key, value := range map[string]string{
		karpv1.LabelCapacityType: karpv1.CapacityTypeReserved, awsv1.LabelCapacityReservationID: made.ID,
		awsv1.LabelCapacityReservationType: "default", awsv1.LabelCapacityReservationInterruptible: "false",
		corev1.LabelTopologyZone: made.Zone.Name,
	} {
		if claim.Labels[key] != value {
			t.Errorf("label %s of the claim is %q, want %q", key, claim.Labels[key], value)
		}
	}
	r.join(t)
	r.work(t)
	if id := r.nodes(t)[0].Labels[awsv1.LabelCapacityReservationID]; id != made.ID {
		t.Errorf("the Node is labelled with reservation %q, want %s", id, made.ID)
	}

	// EC2 has returned that two are left, and was not asked since.
	r.pending(t, "web-2", "1500m", "2Gi")
	r.pending(t, "web-3", "1500m", "2Gi")
	r.plan(t)
	r.work(t)
	if got := r.running(); got["m5.large "+made.ID] != 2 || got["m5.large "]+got["m5.xlarge "] == 0 {
		t.Errorf("with the reservation full: %v\n%s", got, r.log)
	}
}

// TestReservationVanishes: if a reservation ends before the launch planned for it, an on-demand instance is launched.
func TestReservationVanishes(t *testing.T) {
	t.Parallel()
	r, made := reservedRig(t, 1, func(*world.CapacityReservation) {})
	r.pending(t, "web", "1500m", "2Gi")
	r.plan(t)
	r.Do(func(_ *world.World, now time.Time) {
		if err := r.estate.Region.CapacityReservations.Cancel(now, made.ID); err != nil {
			t.Error(err)
		}
	})
	for range 4 { // the launch fails, the claim goes, the next plan knows
		r.work(t)
		r.plan(t)
	}
	r.work(t)
	if diff := cmp.Diff(map[string]int{"m5.large ": 1}, r.running()); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, r.log)
	}
	if told := r.events.has("InsufficientCapacity"); !strings.Contains(told, "reserved capacity for m5.large in "+made.Zone.Name) {
		t.Errorf("events: %q", told)
	}
}

// TestReservationEnds: a node whose reservation ends keeps running as on-demand, and is labelled so. The reservation is used
// again when it is back.
func TestReservationEnds(t *testing.T) {
	t.Parallel()
	r, made := reservedRig(t, 1, func(*world.CapacityReservation) {})
	r.pending(t, "web", "1500m", "2Gi")
	r.plan(t)
	r.work(t)
	r.join(t)
	r.work(t)
	sweep := func() {
		if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if way := r.claims(t)[0].Labels[karpv1.LabelCapacityType]; way != karpv1.CapacityTypeReserved {
		t.Fatalf("with its reservation the claim is %s", way)
	}
	r.Do(func(_ *world.World, now time.Time) {
		if err := r.estate.Region.CapacityReservations.Cancel(now, made.ID); err != nil {
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
			t.Errorf("the %s is %s", name, labels[karpv1.LabelCapacityType])
		}
	}
	if n := len(r.instances()); n != 1 {
		t.Errorf("%d instances live", n)
	}
	r.classes(t)
	if left := r.class(t).Status.CapacityReservations; len(left) != 0 {
		t.Errorf("the class still shows %+v", left)
	}
}

// TestBlockEnds: 40 minutes before a capacity block ends its node is replaced and drained, without any queue; nothing more is
// launched into the block.
func TestBlockEnds(t *testing.T) {
	t.Parallel()
	r, made := reservedRig(t, 2, func(c *world.CapacityReservation) { c.Kind, c.End = "capacity-block", time.Now().Add(48*time.Hour) })
	r.withQueue(t)
	r.pending(t, "web", "1500m", "2Gi")
	r.plan(t)
	r.work(t)
	r.join(t)
	r.work(t)
	r.bind(t)
	if diff := cmp.Diff(map[string]int{"m5.large " + made.ID: 1}, r.running()); diff != "" {
		t.Fatalf("(-want +got):\n%s\n%s", diff, r.log)
	}
	old := r.claims(t)[0].Name
	r.Do(func(_ *world.World, now time.Time) { made.End = now.Add(39 * time.Minute) })
	r.classes(t)
	if state := r.class(t).Status.CapacityReservations[0].State; state != awsv1.CapacityReservationExpiring {
		t.Fatalf("39 minutes before its end the block is %s", state)
	}
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.depart(t)
		r.plan(t)
	}
	r.work(t)
	claims := map[string]bool{}
	for _, c := range r.claims(t) {
		claims[c.Name] = c.DeletionTimestamp != nil
	}
	if leaves, ok := claims[old]; ok && !leaves {
		t.Errorf("the claim stays\n%s", r.log)
	}
	if got := r.running(); got["m5.large "] != 1 {
		t.Errorf("there is no replacement on demand: %v\n%s", got, r.log)
	}
}

// TestReservationsDenied: a missing permission to read reservations that the class selects is reported, and a pool does
// not launch without them.
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
	r.classes(t)
	conditions := r.class(t).StatusConditions()
	got, _ := conditions.Find(awsv1.ConditionCapacityReservationsReady)
	if got.Status != "False" || !strings.Contains(got.Message, "DescribeCapacityReservations") || conditions.IsReady() {
		t.Errorf("%+v, ready %t", got, conditions.IsReady())
	}
	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = nil })
	r.classes(t) // no reservation has this ID, which is no error
	if conditions = r.class(t).StatusConditions(); !conditions.IsReady() {
		t.Errorf("allowed again: %+v", r.class(t).Status.Conditions)
	}
}

// TestReservedBook: a launched instance counts once, from the launch on, however late EC2 counts it.
func TestReservedBook(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	said := func(left int) []ec2.Reservation {
		return []ec2.Reservation{{ReservedCapacity: catalog.ReservedCapacity{Reservation: catalog.Reservation{ID: "cr-1", Left: left}}}}
	}
	var b offerings.ReservedBook
	left := func(what string, want int) {
		if got := b.Left()["cr-1"]; got != want {
			t.Errorf("%s: %d left, want %d", what, got, want)
		}
	}
	if more := b.Saw(now, said(5)); len(more) != 1 {
		t.Errorf("at first there is more than before: %v", more)
	}
	b.Take(now, "cr-1")
	b.Take(now, "cr-1")
	b.Take(now, "cr-2") // of no reservation that is known
	left("two were bought", 3)
	b.Saw(now.Add(time.Second), said(5))
	left("EC2 counts none of them", 3)
	b.Saw(now.Add(2*time.Second), said(4))
	left("EC2 counts one", 3)
	b.Saw(now.Add(3*time.Second), said(2))
	left("EC2 counts both, and one of another user", 2)
	if more := b.Saw(now.Add(4*time.Second), said(3)); len(more) != 1 {
		t.Errorf("one was terminated: %v", more)
	}
	b.Take(now.Add(5*time.Second), "cr-1")
	b.Saw(now.Add(5*time.Second+offerings.ReservedShown), said(3))
	left("EC2 has had a minute to count it, and one was given back", 3)
	b.Saw(now.Add(2*offerings.ReservedKept), nil)
	if len(b.Left()) != 0 {
		t.Errorf("no pod selects it any more: %v", b.Left())
	}
}

// TestChooseReserved: reservations come before all other offerings; one launch uses reservations of one kind, and in each zone the fullest.
func TestChooseReserved(t *testing.T) {
	t.Parallel()
	kind := func(name string, price catalog.Price, reserved ...catalog.ReservedCapacity) catalog.Type {
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
	in := func(id, zone string, left int, more catalog.Reservation) catalog.ReservedCapacity {
		more.ID, more.Left = id, left
		return catalog.ReservedCapacity{Reservation: more, Zone: zone}
	}
	block, plain := catalog.Reservation{Type: catalog.ReservationBlock}, catalog.Reservation{}
	types := []catalog.Type{
		kind("a", 100*catalog.Dollar, in("cr-1", "x", 1, plain), in("cr-2", "x", 3, plain), in("cr-3", "y", 2, plain), in("cr-4", "y", 0, plain)),
		kind("b", 200*catalog.Dollar, in("cr-5", "x", 9, block), in("cr-6", "y", 9, block)),
		kind("c", 300*catalog.Dollar, in("cr-7", "x", 9, catalog.Reservation{Interruptible: true}), in("cr-8", "y", 9, plain)),
	}
	is := func(key string, values ...string) requirements.Requirement {
		return requirements.Requirement{Key: key, Operator: requirements.In, Values: values}
	}
	for name, c := range map[string]struct {
		needs  []requirements.Requirement
		bought bool
		want   string
	}{
		"anything":        {want: "reserved: a/x=cr-2 a/y=cr-3 c/y=cr-8"},
		"one reservation": {needs: []requirements.Requirement{is(catalog.LabelReservationID, "cr-1")}, want: "reserved: a/x=cr-1"},
		"a block": {needs: []requirements.Requirement{is(catalog.LabelReservationType, catalog.ReservationBlock)},
			want: "reserved: b/x=cr-5"},
		"an interruptible": {needs: []requirements.Requirement{is(catalog.LabelReservationInterruptible, "true")}, want: "reserved: c/x=cr-7"},
		"a full one":       {needs: []requirements.Requirement{is(catalog.LabelReservationID, "cr-4")}, want: "on-demand:"},
		"a missing one":    {needs: []requirements.Requirement{is(catalog.LabelReservationID, "cr-9")}, want: "on-demand:"},
		"none": {needs: []requirements.Requirement{{Key: catalog.LabelReservationID, Operator: requirements.DoesNotExist},
			is(catalog.LabelInstanceType, "a")},
			want: "spot: a/x= a/y="},
		"bought": {bought: true, needs: []requirements.Requirement{is(catalog.LabelInstanceType, "a")}, want: "spot: a/x= a/y="},
	} {
		accepted, wrong := requirements.All(c.needs...)
		if wrong != nil {
			t.Fatal(wrong)
		}
		way, picks := offerings.Choose(types,
			offerings.LaunchCandidate{Accepted: accepted, Bought: c.bought, Subnets: map[string]vpc.Subnet{"x": {}, "y": {}}})
		got := way + ":"
		for _, p := range picks {
			got += fmt.Sprintf(" %s/%s=%s", p.Kind.Name, p.Offering.Zone, p.Offering.Reservation.ID)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
