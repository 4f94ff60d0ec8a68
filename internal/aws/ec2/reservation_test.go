package ec2_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// createReservation creates a capacity reservation of one m5.large in the first zone, with the modifications of change.
func (s *fixture) createReservation(t *testing.T, change func(*world.CapacityReservation)) *world.CapacityReservation {
	t.Helper()
	q := world.CapacityReservation{Type: "m5.large", Zone: s.estate.PrivateSubnets[0].Zone, Total: 1, Criteria: "targeted"}
	change(&q)
	var created *world.CapacityReservation
	s.Do(func(_ *world.World, now time.Time) {
		var err error
		if created, err = s.estate.Region.CapacityReservations.Create(now, q); err != nil {
			t.Fatal(err)
		}
	})
	return created
}

// requestInReservation returns a request for an instance in the reservation.
func (s *fixture) requestInReservation(claim string, ref ec2.ReservationRef) ec2.LaunchRequest {
	r := s.request(claim, s.choice("m5.large", 0))
	r.CapacityType = catalog.Reserved
	r.Groups[0].Blueprint.Reservation = ref
	return r
}

func TestReservations(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "u1")
	now := time.Now()
	soon, later := now.Add(30*time.Minute).Truncate(time.Second).UTC(), now.Add(48*time.Hour).Truncate(time.Second).UTC()
	open := s.createReservation(t, func(c *world.CapacityReservation) {
		c.Criteria, c.Total, c.Tags = "open", 3, map[string]string{"team": "a"}
	})
	targeted := s.createReservation(t, func(c *world.CapacityReservation) { c.Tags = map[string]string{"team": "b"} })
	ending := s.createReservation(t, func(c *world.CapacityReservation) {
		c.Kind, c.End, c.Tags = "capacity-block", soon, map[string]string{"gpu": ""}
	})
	block := s.createReservation(t, func(c *world.CapacityReservation) {
		c.Kind, c.End, c.Tags = "capacity-block", later, map[string]string{"gpu": ""}
	})
	cancelled := s.createReservation(t, func(c *world.CapacityReservation) { c.Tags = map[string]string{"team": "a"} })
	s.change(func(r *world.Region, _ *world.World) {
		if err := r.CapacityReservations.Cancel(now, cancelled.ID); err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct {
		terms []ec2.ReservationTerm
		want  []string
	}{
		"by tag":              {[]ec2.ReservationTerm{{Tags: map[string]string{"team": "a"}}}, []string{open.ID}}, // not the cancelled one
		"by any tag value":    {[]ec2.ReservationTerm{{Tags: map[string]string{"team": "*"}}}, []string{open.ID, targeted.ID}},
		"by id":               {[]ec2.ReservationTerm{{ID: targeted.ID}}, []string{targeted.ID}},
		"by criteria":         {[]ec2.ReservationTerm{{Criteria: "open"}}, []string{open.ID}},
		"two fields":          {[]ec2.ReservationTerm{{Criteria: "open", Tags: map[string]string{"team": "b"}}}, nil},
		"of another owner":    {[]ec2.ReservationTerm{{Criteria: "open", OwnerID: "999999999999"}}, nil},
		"owner alone":         {[]ec2.ReservationTerm{{OwnerID: emulator.DefaultAccount}}, nil},
		"deleted reservation": {[]ec2.ReservationTerm{{ID: "cr-0123456789abcdef0"}, {ID: targeted.ID}}, []string{targeted.ID}},
		"several terms":       {[]ec2.ReservationTerm{{Criteria: "open"}, {ID: targeted.ID}, {ID: open.ID}}, []string{open.ID, targeted.ID}},
		"blocks":              {[]ec2.ReservationTerm{{Tags: map[string]string{"gpu": "*"}}}, []string{ending.ID, block.ID}},
	} {
		got, err := d.Reservations(t.Context(), now, c.terms)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		for _, id := range c.want {
			want[id] = true
		}
		have := map[string]bool{}
		for _, r := range got {
			have[r.ID] = true
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	got, err := d.Reservations(t.Context(), now, []ec2.ReservationTerm{{ID: open.ID}, {ID: ending.ID}, {ID: block.ID}})
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]ec2.Reservation{}
	for _, r := range got {
		byID[r.ID] = r
	}
	want := ec2.Reservation{OwnerID: emulator.DefaultAccount, Criteria: "open", ReservedCapacity: catalog.ReservedCapacity{
		Reservation:  catalog.Reservation{ID: open.ID, Type: catalog.ReservationDefault, Left: 3},
		InstanceType: "m5.large", Zone: "us-east-1a"}}
	if diff := cmp.Diff(want, byID[open.ID]); diff != "" {
		t.Errorf("the open reservation (-want +got):\n%s", diff)
	}
	if r := byID[ending.ID]; !r.Expiring || !r.End.Equal(soon) || r.Type != catalog.ReservationBlock {
		t.Errorf("a block in its last 40 minutes: %+v, want a block that is Expiring and ends soon", r)
	}
	if r := byID[block.ID]; r.Expiring {
		t.Errorf("a block that ends in two days is Expiring: %+v", r)
	}
}

// TestLaunchIntoReservation: a launch uses the reservation that it names, and EC2 lists the instance in the
// reservation. A second launch fails, because the reservation is full.
func TestLaunchIntoReservation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*world.CapacityReservation)
		ref    ec2.ReservationRef
		want   catalog.Reservation
	}{
		"default": {func(*world.CapacityReservation) {}, ec2.ReservationRef{}, catalog.Reservation{Type: catalog.ReservationDefault}},
		"interruptible": {func(c *world.CapacityReservation) { c.Interruptible = true },
			ec2.ReservationRef{Interruptible: true}, catalog.Reservation{Type: catalog.ReservationDefault, Interruptible: true}},
		"block": {func(c *world.CapacityReservation) { c.Kind, c.End = "capacity-block", time.Now().Add(24*time.Hour) },
			ec2.ReservationRef{Block: true}, catalog.Reservation{Type: catalog.ReservationBlock}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, "m5.large")
			s.change(func(r *world.Region, _ *world.World) { r.Capacity.Limit(world.CapacityPool{}, 0) }) // no capacity except for the reservation
			d := s.client(t, "u1")
			reservation := s.createReservation(t, c.change)
			c.ref.ID, c.want.ID = reservation.ID, reservation.ID
			launch, err := d.Launch(t.Context(), s.requestInReservation("apps-1", c.ref))
			if err != nil {
				t.Fatal(err)
			}
			seen, err := d.Instance(t.Context(), launch.Instance.ID)
			if err != nil {
				t.Fatal(err)
			}
			for call, i := range map[string]ec2.Instance{"CreateFleet": launch.Instance, "DescribeInstances": seen} {
				if i.CapacityType != catalog.Reserved || i.Reservation != c.want {
					t.Errorf("%s: %s in %+v, want reserved in %+v", call, i.CapacityType, i.Reservation, c.want)
				}
			}
			launch, err = d.Launch(t.Context(), s.requestInReservation("apps-2", c.ref))
			want := []ec2.Shortage{{CapacityType: catalog.Reserved, InstanceType: "m5.large", Zone: "us-east-1a",
				Reservation: reservation.ID, Reason: awserr.Of(err).Reason}}
			if !awserr.Is(err, awserr.Shortage) || !launch.Spent || !cmp.Equal(launch.Shortages, want) {
				t.Errorf("a launch into a full reservation: %+v, %v; want shortages %+v", launch, err, want)
			}
		})
	}
}

// TestLaunchIntoMissingReservation: a reservation that no longer exists is handled like a full one.
func TestLaunchIntoMissingReservation(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	launch, err := s.client(t, "u1").Launch(t.Context(), s.requestInReservation("apps-1", ec2.ReservationRef{ID: "cr-0123456789abcdef0"}))
	if !awserr.Is(err, awserr.Shortage) || len(launch.Shortages) != 1 || launch.Shortages[0].Reservation != "cr-0123456789abcdef0" {
		t.Errorf("%+v, %v; want a shortage of the reservation", launch, err)
	}
}

// TestUnreserved: an on-demand launch uses an open reservation unless the blueprint forbids it.
func TestUnreserved(t *testing.T) {
	t.Parallel()
	for unreserved, want := range map[bool]int{false: 0, true: 1} { // instances of the reservation that stay unused
		s := newFixture(t, "m5.large")
		open := s.createReservation(t, func(c *world.CapacityReservation) { c.Criteria = "open" })
		r := s.request("apps-1", s.choice("m5.large", 0))
		r.Groups[0].Blueprint.Unreserved = unreserved
		launch, err := s.client(t, "u1").Launch(t.Context(), r)
		if err != nil || launch.Instance.CapacityType != catalog.OnDemand {
			t.Fatalf("%+v, %v; want an on-demand instance", launch.Instance, err)
		}
		s.change(func(r *world.Region, _ *world.World) {
			if left := r.CapacityReservations.Unused(open); left != want {
				t.Errorf("Unreserved %t leaves %d free instances in the open reservation, want %d", unreserved, left, want)
			}
		})
	}
}

// TestReservationShortage: a full reservation affects no other offering. It is used again when one of its instances
// ends.
func TestReservationShortage(t *testing.T) {
	t.Parallel()
	now := time.Now()
	instanceType := catalog.Type{Name: "m5.large",
		Offerings: []catalog.Offering{{Zone: "us-east-1a", CapacityType: catalog.OnDemand, Price: 100, Available: true}}}
	var both []catalog.ReservedCapacity
	for _, id := range []string{"cr-1", "cr-2"} {
		both = append(both, catalog.ReservedCapacity{Reservation: catalog.Reservation{ID: id, Left: 2},
			InstanceType: "m5.large", Zone: "us-east-1a"})
	}
	market := catalog.Catalog{Types: []catalog.Type{instanceType.WithReserved(nil, both)}}
	var shortages ec2.Shortages
	shortages.Note(now, ec2.Shortage{CapacityType: catalog.Reserved, InstanceType: "m5.large", Zone: "us-east-1a", Reservation: "cr-1"})
	available := func() map[string]bool { // by capacity type and reservation
		out := map[string]bool{}
		for _, o := range shortages.Apply(now, market).Types[0].Offerings {
			out[o.CapacityType+o.Reservation.ID] = o.Available
		}
		return out
	}
	if diff := cmp.Diff(map[string]bool{"on-demand": true, "reservedcr-1": false, "reservedcr-2": true}, available()); diff != "" {
		t.Errorf("with cr-1 full (-want +got):\n%s", diff)
	}
	shortages.NoteReservationFree("cr-1")
	if !available()["reservedcr-1"] {
		t.Error("cr-1 is still marked as full")
	}
}
