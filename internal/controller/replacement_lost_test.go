package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestReplacementThatFails: the claim of an expired node's replacement is deleted, by Joiner because EC2 has no
// capacity, or by a user. The expired node stays until another replacement is ready.
func TestReplacementThatFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, r *rig, next string){
		"EC2 has no capacity": func(t *testing.T, r *rig, next string) { r.reconcileClaim(t, next) },
		"a user deletes the claim": func(t *testing.T, r *rig, next string) {
			if err := r.api.Delete(t.Context(), r.claim(t, next)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium", "m5.large")
			old := r.createServing(t, "web")[0].Name
			r.age(t, old, tooOld)
			r.reconcileClaim(t, old)
			r.plan(t)
			next := r.otherClaim(t, old).Name
			r.limitToType(t, next, "t3.medium")
			r.Do(func(*world.World, time.Time) {
				r.estate.Region.Capacity.Limit(world.CapacityPool{Type: "t3.medium"}, 0)
			})
			fail(t, r, next)
			r.reconcileClaim(t, old) // while the replacement is being deleted
			for range 10 {
				if r.claim(t, next) == nil {
					break
				}
				r.ahead += time.Minute // by then, EC2 returns any instance that was launched for next
				r.reconcileClaim(t, next)
				r.reconcileClaim(t, old)
			}
			r.reconcileClaim(t, old)
			if r.claim(t, next) != nil || r.claim(t, old).DeletionTimestamp != nil {
				t.Fatalf("the replacement's claim is still there, or the expired node is deleted before its pod has another node\n%s", r.log)
			}
			r.runUntilGone(t, old)
			if r.claim(t, old) != nil || len(r.instances()) != 1 || len(r.claims(t)) != 1 {
				t.Errorf("remaining: %d instances, %d claims; want one each, without the expired one\n%s", len(r.instances()), len(r.claims(t)), r.log)
			}
		})
	}
}

func (r *rig) limitToType(t *testing.T, name, instanceType string) {
	t.Helper()
	claim := r.claim(t, name)
	for i, q := range claim.Spec.Requirements {
		if q.Key == corev1.LabelInstanceTypeStable {
			claim.Spec.Requirements[i].Values = []string{instanceType}
		}
	}
	if err := r.api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}
