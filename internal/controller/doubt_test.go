package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// lossyLauncher is EC2 behind a connection that loses the answers to launches.
type lossyLauncher struct{ nodeclaim.InstanceLauncher }

func (l lossyLauncher) Launch(ctx context.Context, request ec2.LaunchRequest) (ec2.Launch, error) {
	if _, err := l.InstanceLauncher.Launch(ctx, request); err != nil {
		return ec2.Launch{}, err
	}
	return ec2.Launch{}, &awserr.Error{Op: "CreateFleet", Kind: awserr.Transient, Reason: "Timeout"}
}

// TestInstanceOfAClaimDeletedDuringItsLaunchIsTerminated: the claim is deleted during the launch call, the answer is
// lost, and EC2 does not show the instance at once. The claim stays until EC2 shows the instance, which is then
// terminated.
func TestInstanceOfAClaimDeletedDuringItsLaunchIsTerminated(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.Do(func(w *world.World, _ time.Time) { w.Faults.ReadLag = 10 * time.Second })
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.Claims.Launcher = lossyLauncher{r.Claims.Launcher}
	// A long call: when it ends, the claim has been deleted for longer than EC2 takes to show an instance.
	claim := onlyClaim(t, r)
	if err := r.api.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.ahead += time.Minute
	v := nodeclaim.View{Claim: claim, Class: r.class(t)}
	_, _ = r.Claims.Launch(t.Context(), v, r.now()) // writing the claim fails, because the claim has changed
	if n := len(r.instances()); n != 1 {
		t.Fatalf("%d instances were launched, want 1", n)
	}
	r.finish(t)
	if len(r.instances())+len(r.claims(t)) > 0 {
		t.Errorf("%d instances and %d claims are left, want none\n%s", len(r.instances()), len(r.claims(t)), r.log)
	}
}

// TestInstanceIsRecordedInFull: a process that has just started finds the instance of an earlier launch, and does not
// know the instance types yet. It must not record the instance without its capacity, which would never be written
// later.
func TestInstanceIsRecordedInFull(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.Claims.Launcher = lossyLauncher{r.Claims.Launcher}
	r.reconcileClaims(t)
	r.start(t)
	offered := r.Market.Offered
	r.Market.Offered, r.Market.Version = ec2.Market{}, 0
	r.ahead += 6 * time.Minute // too late for a new launch: the instance is searched for
	r.reconcileClaims(t)
	if claim := onlyClaim(t, r); claim.Status.ProviderID != "" && len(claim.Status.Capacity) == 0 {
		t.Fatal("the claim has no capacity, and would never get one")
	}
	r.Market.Offered, r.Market.Version = offered, 1
	r.ahead += time.Minute
	r.reconcileClaims(t)
	if claim := onlyClaim(t, r); claim.Status.ProviderID == "" || len(claim.Status.Capacity) == 0 || claim.Labels["kubernetes.io/arch"] == "" {
		t.Errorf("the claim has instance %q, capacity %v, labels %v; want all\n%s", claim.Status.ProviderID, claim.Status.Capacity, claim.Labels, r.log)
	}
}

// TestSweeperAsksTheServer: before the sweeper terminates an instance without claim, it checks with the API server that
// there is no claim, because its cache may lag behind.
func TestSweeperAsksTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.readyNode(t)
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	r.Sweeper.Cache = fake.NewClientBuilder().WithScheme(scheme).Build() // shows no objects
	r.ahead += 2 * time.Minute
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	if n := len(r.instances()); n != 1 {
		t.Errorf("%d instances, want the one that has a claim\n%s", n, r.log)
	}
}

// TestErrorWithoutOfferingHoldsThePool: if the error of a launch does not name the offering that is short, the pool is
// held. Otherwise plans would create and delete claims in a loop.
func TestErrorWithoutOfferingHoldsThePool(t *testing.T) {
	t.Parallel()
	for name, breakLaunches := range map[string]func(*rig){
		"the error names no offering": func(r *rig) { r.Claims.Launcher = quotaExceeded{r.Claims.Launcher} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.reconcileClassAndPool(t)
			breakLaunches(r)
			r.addPendingPod(t, "web", "500m", "512Mi")
			created := 0
			for range 10 { // ten plans within some seconds
				r.plan(t)
				created += len(r.claims(t))
				r.reconcileClaims(t)
				for _, c := range r.claims(t) {
					c.Finalizers = nil // completes its deletion
					if err := r.api.Update(t.Context(), &c); err != nil {
						t.Fatal(err)
					}
				}
			}
			if created > 1 {
				t.Errorf("%d claims were created, want 1\n%s", created, r.log)
			}
			if until, why := r.Provisioner.LaunchBackoff.Held(r.now(), "apps"); until.IsZero() {
				t.Errorf("the pool is not held: %q", why)
			}
		})
	}
}

// quotaExceeded is EC2 with an exhausted quota of fleets: its error names no offering.
type quotaExceeded struct{ nodeclaim.InstanceLauncher }

func (quotaExceeded) Launch(context.Context, ec2.LaunchRequest) (ec2.Launch, error) {
	return ec2.Launch{}, awserr.FromCode("CreateFleet", "MaxFleetCountExceeded", "too many fleets")
}

// subnets returns the subnets of the class, as far as the loop that launches instances knows them.
func (r *rig) subnets() []vpc.Subnet {
	r.Claims.Offers.Mu.Lock()
	defer r.Claims.Offers.Mu.Unlock()
	return r.Claims.Offers.Subnets["default"]
}

// TestOneUnjoinedInstanceHoldsNoPool: if one instance of a pool does not join, but another one does, launches continue.
func TestOneUnjoinedInstanceHoldsNoPool(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "1500m", "3Gi")
	r.addPendingPod(t, "next", "1500m", "3Gi")
	r.plan(t)
	r.reconcileClaims(t)
	unjoined := r.claims(t)[0].Name // launched, and never joins
	r.ahead += 10 * time.Minute
	for _, c := range r.claims(t) {
		if c.Name != unjoined {
			r.create(t, r.nodeOf(t, c))
		}
	}
	r.reconcileClaims(t)
	r.ahead += 6 * time.Minute // past RegistrationTimeout
	r.reconcileClaims(t)
	if until, why := r.Provisioner.LaunchBackoff.Held(r.now(), "apps"); !until.IsZero() {
		t.Errorf("the pool is held: %s", why)
	}
	if r.events.find("NodeClaim/NodeNotJoining") == "" {
		t.Errorf("no event reports the instance that does not join: %v", r.events.emitted)
	}
}

// TestFixedClassIsUsedAtOnce: EC2 has refused a claim's launch. Then the class is changed, and EC2 accepts launches
// again. The claim's next launch uses the changed class.
func TestFixedClassIsUsedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "ec2:CreateFleet"}} })
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	wait := r.reconcileClaims(t)
	class, userData := r.class(t), "#!/bin/bash\necho fixed\n"
	class.Spec.UserData = &userData
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = nil })
	r.ahead += wait
	r.reconcileClaims(t)
	if launched := r.instances(); len(launched) != 1 || !strings.Contains(launched[0].UserData, "echo fixed") {
		t.Errorf("launched %+v, want one instance with the new user data\n%s", launched, r.log)
	}
}

// TestOneCauseIsOneMessage: AWS puts a different request ID into each answer. Joiner logs the ID, but leaves it out of
// events and conditions, where it would make each attempt look like a new problem.
func TestOneCauseIsOneMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "ec2:CreateFleet"}, {Call: "ec2:TerminateInstances"}, {Call: "ec2:DescribeSubnets"}}
	})
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	for range 3 {
		r.ahead += r.reconcileClaims(t)
	}
	failures := map[string]int{} // how often each event was emitted
	for _, event := range r.events.emitted {
		if strings.Contains(event, "LaunchFailed") {
			failures[event]++
		}
	}
	if len(failures) != 1 {
		t.Errorf("one cause gives %d different messages, want 1: %v", len(failures), failures)
	}
	for range 3 {
		if _, err := r.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(r.log.String(), "cannot reconcile EC2NodeClass"); n != 1 {
		t.Errorf("one cause is logged %d times, want once\n%s", n, r.log)
	}
}
