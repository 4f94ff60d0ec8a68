package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestReplacementThatFails: EC2 has no capacity for the replacement of an expired node. Its claim is gone
// before the next plan is made: until then the node stays, and it goes when the node of that plan is ready.
func TestReplacementThatFails(t *testing.T) {
	t.Parallel()
	for name, deleteIt := range map[string]func(t *testing.T, r *rig, next string){
		"EC2 has no capacity": func(t *testing.T, r *rig, next string) { r.visit(t, next) },
		"a user deletes its claim": func(t *testing.T, r *rig, next string) {
			if err := r.api.Delete(t.Context(), r.claim(t, next)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium", "m5.large")
			old := r.servingNodes(t, "web")[0].Name
			r.age(t, old, tooOld)
			r.visit(t, old)
			r.plan(t)
			next := r.other(t, old).Name
			r.accepts(t, next, "t3.medium")
			r.Do(func(*world.World, time.Time) { r.estate.Region.Capacity.Limit(world.Pool{Type: "t3.medium"}, 0) })
			deleteIt(t, r, next)
			r.visit(t, old) // while it terminates
			for range 10 {
				if r.claim(t, next) == nil {
					break
				}
				r.ahead += time.Minute // until EC2 would return a new instance
				r.visit(t, next)
				r.visit(t, old)
			}
			r.visit(t, old)
			if r.claim(t, next) != nil || r.claim(t, old).DeletionTimestamp != nil {
				t.Fatalf("the node is deleted although its pod has no other place\n%s", r.log)
			}
			r.succeed(t, old)
			if r.claim(t, old) != nil || len(r.instances()) != 1 || len(r.claims(t)) != 1 {
				t.Errorf("remaining: %d instances, %d claims\n%s", len(r.instances()), len(r.claims(t)), r.log)
			}
		})
	}
}

// accepts limits a claim to one instance type.
func (r *rig) accepts(t *testing.T, name, instanceType string) {
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
