package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestEndingReservationIsNotUsed: after an interruption message about the end of a reservation, no instance is launched
// into it, although EC2 and the status of the class still show free capacity in the reservation.
func TestEndingReservationIsNotUsed(t *testing.T) {
	t.Parallel()
	block := func(c *world.CapacityReservation) { c.Kind, c.End = "capacity-block", time.Now().Add(48*time.Hour) }
	for name, c := range map[string]struct {
		setup  func(*world.CapacityReservation)
		isUsed bool // a node runs in the reservation when the message comes
		warn   func(r *rig, reservation *world.CapacityReservation, w *world.World, now time.Time)
	}{
		"a block ends": {block, true, func(r *rig, reservation *world.CapacityReservation, _ *world.World, now time.Time) {
			r.estate.Region.WarnBlockExpiry(now, reservation.ID, now.Add(40*time.Minute))
		}},
		"a block ends before it is used": {block, false, func(r *rig, reservation *world.CapacityReservation, _ *world.World, now time.Time) {
			r.estate.Region.WarnBlockExpiry(now, reservation.ID, now.Add(40*time.Minute))
		}},
		"its owner reclaims the reservation": {func(c *world.CapacityReservation) { c.Interruptible = true }, true,
			func(r *rig, _ *world.CapacityReservation, w *world.World, now time.Time) {
				w.InterruptReserved(now, r.estate.Region.Instances.All()[0].ID)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, reservation := reservedRig(t, 2, c.setup)
			r.withQueue(t)
			r.connectEventBridge()
			want := map[string]int{"m5.large ": 1} // the on-demand instance after the message
			if c.isUsed {
				r.addPendingPod(t, "web", "1500m", "2Gi")
				r.plan(t)
				r.reconcileClaims(t)
				r.join(t)
				r.reconcileClaims(t)
				r.bind(t)
				want["m5.large "+reservation.ID] = 1
			}
			r.Do(func(w *world.World, now time.Time) { c.warn(r, reservation, w, now) })
			r.processQueue(t)
			r.reconcileClassAndPool(t) // EC2 still returns the earlier state
			if !c.isUsed {
				r.addPendingPod(t, "web", "1500m", "2Gi")
			}
			for range 3 {
				r.drainPass(t)
				r.plan(t)
			}
			for _, claim := range r.claims(t) {
				if claim.DeletionTimestamp == nil {
					r.reconcileClaim(t, claim.Name)
				}
			}
			if diff := cmp.Diff(want, r.countByReservation()); diff != "" {
				t.Errorf("instances, by reservation (-want +got):\n%s\n%s", diff, r.log)
			}
		})
	}
}
