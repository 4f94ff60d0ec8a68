package controller

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/controller/nodeclass"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestCrashDuringFirstReconcileOfAClass ends the process after each of its writes in turn, while it creates the
// resources of a new class. The class is deleted before the next process starts. In each case, neither the class nor a
// resource is left.
func TestCrashDuringFirstReconcileOfAClass(t *testing.T) {
	t.Parallel()
	const minWrites = 4 // the finalizer, the instance profile, its role, the status
	crashAfterEachWrite(t, minWrites, createAndDeleteWithCrash)
}

// createAndDeleteWithCrash ends the first process after crashAfter writes, and returns the number of its writes.
func createAndDeleteWithCrash(t *testing.T, crashAfter int) int {
	t.Helper()
	r := newRig(t, "t3.medium")
	awsClient, ok := r.Claims.Instances.(nodeclass.DryRunner)
	if !ok {
		t.Fatal("the rig's EC2 client makes no dry runs")
	}
	r.NodeClasses.DryRunner = awsClient
	r.fuse.set(crashAfter)
	_, _ = r.NodeClasses.Reconcile(t.Context(), named("default")) // fails if the process ends
	writes := r.fuse.writes()
	if err := r.api.Delete(t.Context(), r.class(t)); err != nil {
		t.Fatal(err)
	}
	r.restart(t)
	for range 3 {
		if _, err := r.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
			t.Fatal(err)
		}
	}
	profiles, templates := 0, 0
	r.Do(func(w *world.World, _ time.Time) {
		profiles = len(w.Account(emulator.DefaultAccount).Profiles("/"))
		templates = len(r.estate.Region.LaunchTemplates.All())
	})
	class := testClass()
	err := r.api.Get(t.Context(), client.ObjectKeyFromObject(class), class)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if profiles+templates > 0 || err == nil {
		t.Errorf("remaining: %d instance profiles, %d launch templates, want none; the class exists: %t, want false\n%s",
			profiles, templates, err == nil, r.log)
	}
	return writes
}
