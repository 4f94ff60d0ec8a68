package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestEndingReservationIsNotUsed: EC2's message about the end of a reservation counts at once, although its next answer, and the
// class's status, still show one instance that is left.
func TestEndingReservationIsNotUsed(t *testing.T) {
	t.Parallel()
	block := func(c *world.CapacityReservation) { c.Kind, c.End = "capacity-block", time.Now().Add(48*time.Hour) }
	for name, c := range map[string]struct {
		kind   func(*world.CapacityReservation)
		isUsed bool // one of our nodes runs in it
		notice func(r *rig, made *world.CapacityReservation, w *world.World, now time.Time)
	}{
		"a block ends": {block, true, func(r *rig, made *world.CapacityReservation, _ *world.World, now time.Time) {
			r.estate.Region.ExpireBlock(now, made.ID, now.Add(40*time.Minute))
		}},
		"a block ends before it is used": {block, false, func(r *rig, made *world.CapacityReservation, _ *world.World, now time.Time) {
			r.estate.Region.ExpireBlock(now, made.ID, now.Add(40*time.Minute))
		}},
		"its owner reclaims it": {func(c *world.CapacityReservation) { c.Interruptible = true }, true,
			func(r *rig, _ *world.CapacityReservation, w *world.World, now time.Time) {
				w.Reclaim(now, r.estate.Region.Instances.All()[0].ID)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, made := reservedRig(t, 2, c.kind)
			r.withQueue(t)
			r.announced()
			want := map[string]int{"m5.large ": 1}
			if c.isUsed {
				r.pending(t, "web", "1500m", "2Gi")
				r.plan(t)
				r.work(t)
				r.join(t)
				r.work(t)
				r.bind(t)
				want["m5.large "+made.ID] = 1
			}
			r.Do(func(w *world.World, now time.Time) { c.notice(r, made, w, now) })
			r.read(t)
			r.classes(t) // EC2 returns its earlier state
			if !c.isUsed {
				r.pending(t, "web", "1500m", "2Gi")
			}
			for range 3 {
				r.depart(t)
				r.plan(t)
			}
			for _, claim := range r.claims(t) {
				if claim.DeletionTimestamp == nil {
					r.visit(t, claim.Name)
				}
			}
			if diff := cmp.Diff(want, r.running()); diff != "" {
				t.Errorf("instances, by reservation (-want +got):\n%s\n%s", diff, r.log)
			}
		})
	}
}
