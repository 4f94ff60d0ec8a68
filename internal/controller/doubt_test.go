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

// lossy is EC2 behind a connection that loses the answers to launches.
type lossy struct{ nodeclaim.InstanceLauncher }

func (l lossy) Launch(ctx context.Context, request ec2.LaunchRequest) (ec2.Launch, error) {
	if _, err := l.InstanceLauncher.Launch(ctx, request); err != nil {
		return ec2.Launch{}, err
	}
	return ec2.Launch{}, &awserr.Error{Op: "CreateFleet", Kind: awserr.Transient, Reason: "Timeout"}
}

// TestClaimThatLeavesDuringItsLaunchTakesItsInstanceAlong: the claim is deleted during the launch call, the answer is lost,
// and EC2 does not show the instance at once. The claim stays until EC2 does.
func TestClaimThatLeavesDuringItsLaunchTakesItsInstanceAlong(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.Do(func(w *world.World, _ time.Time) { w.Faults.ReadLag = 10 * time.Second })
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.Claims.Launcher = lossy{r.Claims.Launcher}
	// A long call: when it ends, the claim has been deleted for longer than EC2 takes to show an instance.
	claim := findClaim(t, r)
	if err := r.api.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.ahead += time.Minute
	v := nodeclaim.View{Claim: claim, Class: r.class(t)}
	_, _ = r.Claims.Launch(t.Context(), v, r.now()) // writing the claim fails, because it has changed
	if n := len(r.instances()); n != 1 {
		t.Fatalf("%d instances", n)
	}
	r.finish(t)
	if len(r.instances())+len(r.claims(t)) > 0 {
		t.Errorf("remaining: %d instances, %d claims\n%s", len(r.instances()), len(r.claims(t)), r.log)
	}
}

// TestInstanceIsRecordedInFull: a process that has just started, and finds an instance launched before it, does not know the
// instance types yet. What it writes on the claim is never written again.
func TestInstanceIsRecordedInFull(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.Claims.Launcher = lossy{r.Claims.Launcher}
	r.work(t)
	r.start(t)
	offered := r.Market.Offered
	r.Market.Offered, r.Market.Version = ec2.Market{}, 0
	r.ahead += 6 * time.Minute // too late for a new launch: the instance is searched for
	r.work(t)
	if claim := findClaim(t, r); claim.Status.ProviderID != "" && len(claim.Status.Capacity) == 0 {
		t.Fatal("the claim has no capacity, and would never get one")
	}
	r.Market.Offered, r.Market.Version = offered, 1
	r.ahead += time.Minute
	r.work(t)
	if claim := findClaim(t, r); claim.Status.ProviderID == "" || len(claim.Status.Capacity) == 0 || claim.Labels["kubernetes.io/arch"] == "" {
		t.Errorf("the claim has instance %q, %v, %v\n%s", claim.Status.ProviderID, claim.Status.Capacity, claim.Labels, r.log)
	}
}

// TestSweeperAsksTheServer: a cache that lags behind costs no instance.
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

// TestNothingLearnedHoldsThePool: if the error does not name the offering that is short, an immediate new plan would create
// and delete claims in a loop.
func TestNothingLearnedHoldsThePool(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*rig){
		"the error names no offering": func(r *rig) { r.Claims.Launcher = mute{r.Claims.Launcher} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.classes(t)
			spoil(r)
			r.pending(t, "web", "500m", "512Mi")
			made := 0
			for range 10 { // ten plans within some seconds
				r.plan(t)
				made += len(r.claims(t))
				r.work(t)
				for _, c := range r.claims(t) {
					c.Finalizers = nil
					if err := r.api.Update(t.Context(), &c); err != nil {
						t.Fatal(err)
					}
				}
			}
			if made > 1 {
				t.Errorf("%d claims were made one after the other\n%s", made, r.log)
			}
			if until, why := r.Provisioner.Holds.Held(r.now(), "apps"); until.IsZero() {
				t.Errorf("the pool is not held: %q", why)
			}
		})
	}
}

// mute is EC2 with an exhausted quota: its error names no offering.
type mute struct{ nodeclaim.InstanceLauncher }

func (mute) Launch(context.Context, ec2.LaunchRequest) (ec2.Launch, error) {
	return ec2.Launch{}, awserr.FromCode("CreateFleet", "MaxFleetCountExceeded", "too many fleets")
}

func (r *rig) subnets() []vpc.Subnet {
	r.Claims.Offers.Mu.Lock()
	defer r.Claims.Offers.Mu.Unlock()
	return r.Claims.Offers.Subnets["default"]
}

// TestOneBadMachineHoldsNoPool: while other instances of the pool join, one that does not is no reason to stop launches.
func TestOneBadMachineHoldsNoPool(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "late", "1500m", "3Gi")
	r.pending(t, "next", "1500m", "3Gi")
	r.plan(t)
	r.work(t)
	late := r.claims(t)[0].Name // launched, and never joins
	r.ahead += 10 * time.Minute
	for _, c := range r.claims(t) {
		if c.Name != late {
			r.create(t, r.nodeOf(t, c))
		}
	}
	r.work(t)
	r.ahead += 6 * time.Minute
	r.work(t)
	if until, why := r.Provisioner.Holds.Held(r.now(), "apps"); !until.IsZero() {
		t.Errorf("the pool is on hold: %s", why)
	}
	if r.events.has("NodeClaim/NodeNotJoining") == "" {
		t.Errorf("no event was emitted: %v", r.events.told)
	}
}

// TestMendedClassIsUsedAtOnce: EC2 has refused a launch of the class. Once the class is fixed, the claim's next launch is
// made from the fixed class.
func TestMendedClassIsUsedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "ec2:CreateFleet"}} })
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	wait := r.work(t)
	class, mended := r.class(t), "#!/bin/bash\necho mended\n"
	class.Spec.UserData = &mended
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = nil })
	r.ahead += wait
	r.work(t)
	if bought := r.instances(); len(bought) != 1 || !strings.Contains(bought[0].UserData, "echo mended") {
		t.Errorf("launched %+v\n%s", bought, r.log)
	}
}

// TestOneCauseIsOneMessage: AWS puts another request ID into each answer. It belongs into the log. In events and
// conditions it would make each attempt look like a new problem.
func TestOneCauseIsOneMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "ec2:CreateFleet"}, {Call: "ec2:TerminateInstances"}, {Call: "ec2:DescribeSubnets"}}
	})
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	for range 3 {
		r.ahead += r.work(t)
	}
	told := map[string]int{}
	for _, event := range r.events.told {
		if strings.Contains(event, "LaunchFailed") {
			told[event]++
		}
	}
	if len(told) != 1 {
		t.Errorf("one cause gives %d different messages: %v", len(told), told)
	}
	for range 3 {
		if _, err := r.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(r.log.String(), "cannot reconcile EC2NodeClass"); n != 1 {
		t.Errorf("one cause is logged %d times\n%s", n, r.log)
	}
}
