package controller

import (
	"strings"
	"testing"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// newDryRunRig returns a rig that checks node classes by dry runs of EC2.
func newDryRunRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, "t3.medium", "t4g.medium")
	awsClient, ok := r.Claims.Launcher.(*ec2.Client)
	if !ok {
		t.Fatal("the rig's launcher is not an EC2 client")
	}
	r.NodeClasses.DryRunner = awsClient
	return r
}

// TestDryRunFindsErrors: an error that EC2 would return at a launch is in the class's condition before the first
// launch. The class becomes ready when the cause is fixed.
func TestDryRunFindsErrors(t *testing.T) {
	t.Parallel()
	deny := func(call string) world.Faults { return world.Faults{Denials: []world.Denial{{Call: call}}} }
	for name, c := range map[string]struct {
		faults world.Faults
		want   string // status, reason, part of the message
	}{
		"no error":            {world.Faults{}, "True ValidationSucceeded"},
		"no launch templates": {deny("ec2:CreateLaunchTemplate"), "False CreateLaunchTemplateAuthCheckFailed policy of the controller's role"},
		"no fleets":           {deny("ec2:CreateFleet"), "False CreateFleetAuthCheckFailed CreateFleet"},
		"no instances":        {deny("ec2:RunInstances"), "False RunInstancesAuthCheckFailed RunInstances"},
		"an unknown error of EC2": {world.Faults{CallErrors: []*world.CallError{{Call: "ec2:RunInstances", Status: 400,
			Code: "InvalidBlockDeviceMapping", Message: "too small"}}}, "False BlockDeviceMappingInvalid spec.blockDeviceMappings"},
		"a new profile": {world.Faults{ProfileLag: time.Hour}, "Unknown InstanceProfileNameInvalid some seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newDryRunRig(t)
			r.Do(func(w *world.World, _ time.Time) { w.Faults = c.faults })
			r.reconcileClassAndPool(t)
			got, _ := r.class(t).StatusConditions().Find(awsv1.ConditionValidationSucceeded)
			status, rest, _ := strings.Cut(c.want, " ")
			reason, part, _ := strings.Cut(rest, " ")
			if string(got.Status) != status || got.Reason != reason || !strings.Contains(got.Message, part) ||
				strings.Contains(got.Message, "[request") {
				t.Errorf("%s %s %q, want %s", got.Status, got.Reason, got.Message, c.want)
			}
			if n := len(r.instances()); n > 0 {
				t.Errorf("%d instances were launched, want none", n)
			}
			r.Do(func(w *world.World, _ time.Time) { w.Faults = world.Faults{} })
			r.NodeClasses.DryRuns.ByClass = nil // forgets the dry run, as after a minute
			r.reconcileClassAndPool(t)
			if !r.class(t).StatusConditions().IsReady() {
				t.Errorf("the class is not ready although the cause is fixed: %+v", r.class(t).Status.Conditions)
			}
		})
	}
}

// TestDryRunIsRemembered: the same dry run is not repeated, but a changed class causes a new one.
func TestDryRunIsRemembered(t *testing.T) {
	t.Parallel()
	r := newDryRunRig(t)
	dryRuns := func() int { return r.Calls()["ec2:RunInstances"] }
	r.reconcileClassAndPool(t)
	r.reconcileClassAndPool(t)
	if dryRuns() != 1 {
		t.Errorf("%d dry runs for an unchanged class, want 1", dryRuns())
	}
	class := r.class(t)
	class.Spec.Tags = map[string]string{"team": "b"}
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.reconcileClassAndPool(t)
	if dryRuns() != 2 {
		t.Errorf("%d dry runs in all after a change of the class, want 2", dryRuns())
	}
}

// TestDryRunWaitsForTheMarket: a new process does not know the instance types yet. Until then a new class waits, and a
// class that was ready stays ready.
func TestDryRunWaitsForTheMarket(t *testing.T) {
	t.Parallel()
	r := newDryRunRig(t)
	offered := r.Market.Offered
	r.Market.Offered = ec2.Market{}
	result, err := r.NodeClasses.Reconcile(t.Context(), named("default"))
	got, _ := r.class(t).StatusConditions().Find(awsv1.ConditionValidationSucceeded)
	if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > time.Second || got.Status != "Unknown" {
		t.Errorf("the class is reconciled again after %s (%v) with condition %s %q; want at most 1s and Unknown",
			result.RequeueAfter, err, got.Status, got.Message)
	}
	r.Market.Offered = offered
	r.reconcileClassAndPool(t)
	r.Market.Offered = ec2.Market{}
	r.reconcileClassAndPool(t)
	if !r.class(t).StatusConditions().IsTrue(karpv1.ConditionReady) {
		t.Errorf("a class that was ready is no longer ready while the instance types are unknown: %+v", r.class(t).Status.Conditions)
	}
}
