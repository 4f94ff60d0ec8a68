package controller

import (
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/controller/gc"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// TestUnusedProfilesAreDeleted: when the role of a class changes, the instance profile of the old role stays while a
// node uses it. Then this profile is deleted. Profiles that Joiner did not create stay.
func TestUnusedProfilesAreDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	awsClient, ok := r.NodeClasses.Profiles.(*iam.Client)
	if !ok {
		t.Fatal("the rig's profiles are not an IAM client")
	}
	r.Sweeper.Profiles = awsClient
	r.Do(func(w *world.World, now time.Time) {
		account := w.Account(emulator.DefaultAccount)
		_, err := account.CreateRole(now, identity.Role{Name: "other"})
		if err == nil {
			_, err = account.CreateProfile(now, identity.Profile{Name: "by-hand", Path: "/karpenter/us-east-1/prod/"})
		}
		if err != nil {
			t.Error(err)
		}
	})
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	class := r.class(t)
	old := class.Status.InstanceProfile
	class.Spec.Role = "other"
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.reconcileClassAndPool(t)
	current := r.class(t).Status.InstanceProfile
	sweepAndWant := func(when string, want ...string) {
		t.Helper()
		r.ahead += gc.ProfileSweepInterval + gc.ProfileGrace
		if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
		existing := map[string]bool{}
		r.Do(func(w *world.World, _ time.Time) {
			for _, p := range w.Account(emulator.DefaultAccount).Profiles("/") {
				existing[p.Name] = true
			}
		})
		for _, name := range want {
			if !existing[name] {
				t.Errorf("%s: %s is gone", when, name)
			}
		}
		if len(existing) != len(want) {
			t.Errorf("%s: the profiles are %v, want %v", when, existing, want)
		}
	}
	sweepAndWant("while a node runs with the old role", old, current, "by-hand")
	if err := r.api.Delete(t.Context(), onlyClaim(t, r)); err != nil {
		t.Fatal(err)
	}
	r.finish(t)
	sweepAndWant("when that node is gone", current, "by-hand")
}
