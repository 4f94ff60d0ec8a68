package world_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// reserve creates a capacity reservation for one m5.large in zone a, after change has modified its parameters.
func reserve(t *testing.T, e world.ClusterResources, change func(*world.CapacityReservation)) *world.CapacityReservation {
	t.Helper()
	q := world.CapacityReservation{Type: "m5.large", Zone: site.Zone{Name: "us-east-1a"}, Total: 1}
	change(&q)
	c, err := e.Region.CapacityReservations.Create(noon(), q)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// launchInto launches an m5.large in zone a with launch parameters for reservations. Empty parameters are not set.
func launchInto(t *testing.T, e world.ClusterResources, preference, target, market string) (world.Instance, error) {
	t.Helper()
	data := world.TemplateData{ImageID: image(t, e.Region), InstanceType: "m5.large"}
	if preference != "" || target != "" {
		data.Reservation = &world.ReservationOptions{Preference: preference}
	}
	if target != "" {
		data.Reservation.Target = &world.ReservationTarget{ID: target}
	}
	if market != "" {
		data.Market = &world.MarketOptions{Kind: market}
	}
	got, err := e.Region.Launches.RunInstances(noon(), world.RunRequest{Data: data, SubnetID: e.PrivateSubnets[0].ID, Min: 1, Max: 1})
	if err != nil {
		return world.Instance{}, err
	}
	return got[0], nil
}

// TestReservedLaunch: a launch that names a reservation runs in it or fails, any matching launch uses an open
// reservation, and reserved capacity is not available to other launches.
func TestReservedLaunch(t *testing.T) {
	t.Parallel()
	_, e := newClusterWorld(t)
	e.Region.Capacity.Limit(world.CapacityPool{}, 0) // no capacity except the reserved one
	open := reserve(t, e, func(*world.CapacityReservation) {})
	targeted := reserve(t, e, func(c *world.CapacityReservation) { c.Criteria = "targeted" })
	if _, err := launchInto(t, e, world.NeverReserved, "", ""); code(err) != "InsufficientInstanceCapacity" {
		t.Errorf("a launch that must not use a reservation: %v, want InsufficientInstanceCapacity", err)
	}
	first, err := launchInto(t, e, "", "", "")
	if err != nil || first.CapacityReservationID != open.ID {
		t.Errorf("a launch without a preference: in %q, want the open reservation; error %v", first.CapacityReservationID, err)
	}
	if _, err := launchInto(t, e, "", "", ""); code(err) != "InsufficientInstanceCapacity" {
		t.Errorf("a second launch, when the open reservation is full: %v, want InsufficientInstanceCapacity", err)
	}
	if _, err := launchInto(t, e, world.OnlyReserved, open.ID, ""); code(err) != "ReservationCapacityExceeded" {
		t.Errorf("into the full reservation: %v, want ReservationCapacityExceeded", err)
	}
	second, err := launchInto(t, e, world.OnlyReserved, targeted.ID, "")
	if err != nil || second.CapacityReservationID != targeted.ID || e.Region.CapacityReservations.Unused(targeted) != 0 {
		t.Errorf("the launch is in %q, %d unused; error %v; want the targeted reservation, 0", second.CapacityReservationID, e.Region.CapacityReservations.Unused(targeted), err)
	}
	if _, _, err := e.Region.Instances.Terminate(noon(), []string{second.ID}); err != nil ||
		e.Region.CapacityReservations.Unused(targeted) != 1 {
		t.Errorf("after the termination %d are unused, want 1; error %v", e.Region.CapacityReservations.Unused(targeted), err)
	}
	if _, err := launchInto(t, e, world.OnlyReserved, "cr-00000000000000000", ""); code(err) != "InvalidCapacityReservationId.NotFound" {
		t.Errorf("into an unknown reservation: %v, want InvalidCapacityReservationId.NotFound", err)
	}
}

// TestReservationEnds: the instances of an ended reservation continue to run on demand. The instances of a capacity
// block end after a warning.
func TestReservationEnds(t *testing.T) {
	t.Parallel()
	w, e := newClusterWorld(t)
	r := e.Region
	if _, err := r.SQS.CreateQueue(noon(), "demo", nil); err != nil {
		t.Fatal(err)
	}
	plain := reserve(t, e, func(*world.CapacityReservation) {})
	block := reserve(t, e, func(c *world.CapacityReservation) {
		c.Kind, c.Criteria, c.End = "capacity-block", "targeted", noon().Add(time.Hour)
	})
	if _, err := launchInto(t, e, world.OnlyReserved, block.ID, ""); code(err) != "InvalidParameterCombination" {
		t.Errorf("an on-demand launch into a capacity block: %v, want InvalidParameterCombination", err)
	}
	inPlain, errA := launchInto(t, e, world.OnlyReserved, plain.ID, "")
	inBlock, errB := launchInto(t, e, world.OnlyReserved, block.ID, world.MarketBlock)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if err := r.CapacityReservations.Cancel(noon(), plain.ID); err != nil {
		t.Fatal(err)
	}
	inPlain, _ = w.Instance(inPlain.ID)
	if !inPlain.Alive() || inPlain.CapacityReservationID != "" || r.CapacityReservations.Unused(plain) != 0 {
		t.Errorf("after the end, the instance is %s in %q, %d unused, want it alive in no reservation",
			inPlain.State, inPlain.CapacityReservationID, r.CapacityReservations.Unused(plain))
	}
	w.Advance(noon()) // both run before the queue receives events of state changes
	r.EventQueues = []string{"demo"}
	w.Advance(noon().Add(21 * time.Minute))
	got, err := r.SQS.ReceiveMessages(noon().Add(21*time.Minute), "demo", 10, -1)
	if err != nil || len(got) != 1 || !strings.Contains(got[0].Body, block.ID) ||
		!strings.Contains(got[0].Body, `"end-date":"2026-08-01T13:00:00Z"`) {
		t.Fatalf("39 minutes before the end: %+v, %v, want the warning about the block", got, err)
	}
	if inBlock, _ = w.Instance(inBlock.ID); !inBlock.Alive() {
		t.Errorf("the instance in the block ended early: %s", inBlock.State)
	}
	w.Advance(noon().Add(31 * time.Minute))
	if inBlock, _ = w.Instance(inBlock.ID); inBlock.Alive() {
		t.Errorf("29 minutes before the end of the block, the instance is %s, want it ended", inBlock.State)
	}
	w.Advance(noon().Add(time.Hour))
	if block.State != "expired" {
		t.Errorf("at its end the block is %s, want expired", block.State)
	}
}
