package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestShortageIsPlannedAround: after a shortage, the offering is not requested again, the claim is deleted, and the pod
// is planned onto another offering at once.
func TestShortageIsPlannedAround(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium", "m5.large")
	r.reconcileClassAndPool(t)
	r.Do(func(*world.World, time.Time) {
		r.estate.Region.Capacity.Limit(world.CapacityPool{Type: "t3.medium"}, 0)
	})
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	// The plan's claim accepts both types. Create another claim for the cheaper type only, which has no capacity.
	claim := r.claims(t)[0]
	cheaper := claim.DeepCopy()
	for i, q := range cheaper.Spec.Requirements {
		if q.Key == "node.kubernetes.io/instance-type" {
			cheaper.Spec.Requirements[i].Values = []string{"t3.medium"}
		}
	}
	cheaper.ObjectMeta = metav1.ObjectMeta{Name: "cheaper", Labels: claim.Labels, Finalizers: claim.Finalizers}
	r.create(t, cheaper)
	r.reconcileClaims(t)
	if r.events.find("NodeClaim/InsufficientCapacityError", "t3.medium") == "" {
		t.Errorf("no event InsufficientCapacityError names t3.medium: %v", r.events.emitted)
	}
	r.finishDeleted(t)
	left := r.claims(t)
	if len(left) != 1 || left[0].Name == "cheaper" {
		t.Fatalf("%d claims are left, want only the plan's claim\n%s", len(left), r.log)
	}
	if n := r.instances(); len(n) != 1 || n[0].Type != "m5.large" {
		t.Errorf("launched %+v, want one m5.large", n)
	}
	if !r.Batch().ClosesNow() {
		t.Error("no plan is requested for the pods of the deleted claim")
	}
	for _, typ := range r.Market.Market(time.Now())["default"].Types {
		for _, o := range typ.Offerings {
			if o.CapacityType == "on-demand" && o.Available != (typ.Name == "m5.large") {
				t.Errorf("offering %s in %s as %s: available %t, want only m5.large available", typ.Name, o.Zone, o.CapacityType, o.Available)
			}
		}
	}
}

// TestZonesWithoutAddresses: plans avoid a zone whose subnets are full. If all subnets are full, the pod is refused.
// After FirstBackoff the zones are available again.
func TestZonesWithoutAddresses(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	markFull := func(subnets ...vpc.Subnet) {
		for _, s := range subnets {
			r.Claims.Offers.Shortages.Note(time.Now(), ec2.Shortage{SubnetID: s.ID, Reason: "InsufficientFreeAddressesInSubnet"})
		}
	}
	subnets := r.subnets()
	markFull(subnets[0])
	for _, o := range r.Market.Market(time.Now())["default"].Types[0].Offerings {
		if o.Available != (o.Zone != subnets[0].Zone) {
			t.Errorf("%s in %s: available %t; want all zones but %s, whose subnet is full", o.CapacityType, o.Zone, o.Available, subnets[0].Zone)
		}
	}
	markFull(subnets[1:]...)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	if n := len(r.claims(t)); n != 0 {
		t.Errorf("%d claims are created in full subnets, want none\n%s", n, r.log)
	}
	if !strings.Contains(r.log.String(), `"refused":1`) {
		t.Errorf("the pod is not refused:\n%s", r.log)
	}
	for _, o := range r.Market.Market(time.Now().Add(ec2.FirstBackoff + time.Second))["default"].Types[0].Offerings {
		if !o.Available {
			t.Errorf("%s in %s is not available after FirstBackoff", o.CapacityType, o.Zone)
		}
	}
}

// Batch returns the batch of the provisioner.
func (r *rig) Batch() *loop.Batch { return r.Provisioner.Batch }

// finishDeleted reconciles the claims until all deleted claims are gone.
func (r *rig) finishDeleted(t *testing.T) {
	t.Helper()
	for range 20 {
		r.ahead += r.reconcileClaims(t)
		deleted := 0
		for _, c := range r.claims(t) {
			if c.DeletionTimestamp != nil {
				deleted++
			}
		}
		if deleted == 0 {
			return
		}
	}
	t.Fatalf("claims are still being deleted\n%s", r.log)
}

// TestDeniedLaunchIsReportedAndRetried: if IAM denies a launch, a condition and an event of the claim name the denied
// call. The pool launches nothing, and its condition gives the cause, until IAM allows the launch.
func TestDeniedLaunchIsReportedAndRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "ec2:CreateFleet"}} })
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	wait := r.reconcileClaims(t)
	launched, _ := onlyClaim(t, r).StatusConditions().Find(karpv1.ConditionLaunched)
	if launched.Status != "Unknown" || launched.Reason != "Unauthorized" || !strings.Contains(launched.Message, "CreateFleet") {
		t.Errorf("the condition Launched of the claim is %+v, want Unknown, Unauthorized and CreateFleet", launched)
	}
	if r.events.find("NodeClaim/LaunchFailed", "CreateFleet") == "" || wait <= 0 {
		t.Errorf("events %v, want LaunchFailed; next try in %s, want a later one", r.events.emitted, wait)
	}
	until, cause := r.Provisioner.LaunchBackoff.Held(r.now(), "apps")
	if until.IsZero() || !strings.Contains(cause, "Unauthorized") {
		t.Errorf("the pool is held until %s for %q, want a time and Unauthorized", until, cause)
	}
	r.addPendingPod(t, "more", "1500m", "3Gi")
	r.plan(t)
	if n := len(r.claims(t)); n != 1 {
		t.Errorf("%d claims, want 1: a claim was created although the pool is held", n)
	}
	if _, err := r.Pools.Reconcile(t.Context(), named("apps")); err != nil {
		t.Fatal(err)
	}
	if healthy, _ := r.pool(t).StatusConditions().Find(karpv1.ConditionNodeRegistrationHealthy); healthy.Status != "False" ||
		!strings.Contains(healthy.Message, "Unauthorized") {
		t.Errorf("the condition of the pool is %+v, want False with Unauthorized", healthy)
	}

	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = nil })
	r.ahead += wait
	r.reconcileClaims(t)
	if n := len(r.instances()); n != 1 || onlyClaim(t, r).Status.ProviderID == "" {
		t.Errorf("%d instances after IAM allowed the launch, want 1\n%s", n, r.log)
	}
	if until, _ := r.Provisioner.LaunchBackoff.Held(r.now(), "apps"); !until.IsZero() {
		t.Errorf("the pool is still held until %s", until)
	}
}

func onlyClaim(t *testing.T, r *rig) *karpv1.NodeClaim {
	t.Helper()
	claims := r.claims(t)
	if len(claims) != 1 {
		t.Fatalf("%d claims, want one\n%s", len(claims), r.log)
	}
	return &claims[0]
}

func (r *rig) pool(t *testing.T) *karpv1.NodePool {
	t.Helper()
	pool := &karpv1.NodePool{}
	if err := r.api.Get(t.Context(), named("apps").NamespacedName, pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

func (r *rig) class(t *testing.T) *awsv1.EC2NodeClass {
	t.Helper()
	class := &awsv1.EC2NodeClass{}
	if err := r.api.Get(t.Context(), named("default").NamespacedName, class); err != nil {
		t.Fatal(err)
	}
	return class
}

func TestUnjoinedInstanceDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "1500m", "3Gi")
	r.plan(t)
	r.reconcileClaims(t) // launches an instance, which never joins
	r.addPendingPod(t, "next", "1500m", "3Gi")
	r.plan(t)
	r.reconcileClaims(t)
	if n := len(r.instances()); n != 2 {
		t.Fatalf("%d instances, want 2 for two pods that need one each\n%s", n, r.log)
	}
	r.ahead += 15 * time.Minute
	r.finishDeleted(t)
	if len(r.instances())+len(r.claims(t)) > 0 {
		t.Errorf("%d instances and %d claims that did not join in time are left", len(r.instances()), len(r.claims(t)))
	}
	if r.events.find("NodeClaim/NodeNotJoining") == "" {
		t.Errorf("no event reports that an instance did not join: %v", r.events.emitted)
	}
	if _, why := r.Provisioner.LaunchBackoff.Held(r.now(), "apps"); !strings.Contains(why, "did not join the cluster 1 time in a row") {
		t.Errorf("two instances that overlapped did not join, which must count as one failure; but the pool is held: %q", why)
	}
}

func TestRefusedPodGetsAnEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "huge", "64", "64Gi")
	r.plan(t)
	r.emitQueuedEvents()
	if len(r.claims(t)) > 0 || r.events.find("Pod/FailedScheduling", string(packing.TooSmall)) == "" {
		t.Errorf("%d claims, want none and the event FailedScheduling; events %v", len(r.claims(t)), r.events.emitted)
	}
}

// emitQueuedEvents emits the queued events without waiting for the rate limit.
func (r *rig) emitQueuedEvents() {
	for e, ok := r.Provisioner.Events.Next(); ok; e, ok = r.Provisioner.Events.Next() {
		r.events.Emit(e.About, e.Reason, e.Message)
	}
}

// TestSweeper: an instance of this cluster without a claim is terminated. An instance of another cluster with the same
// name is not. A claim whose instance is gone is deleted.
func TestSweeper(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	claim := onlyClaim(t, r)
	launch := func(uid string) (id string) {
		awsClient, err := ec2.New(r.cfg(), ec2.Cluster{Name: testCluster, UID: uid})
		if err != nil {
			t.Fatal(err)
		}
		request, err := r.Claims.Offers.Request(claim, r.class(t), 0, r.now())
		if err != nil {
			t.Fatal(err)
		}
		request.Claim, request.ClaimUID = "deleted", "uid-of-deleted-"+uid
		result, err := awsClient.Launch(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return result.Instance.ID
	}
	orphan, foreign := launch(testUID), launch("another")
	r.ahead += time.Minute
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	alive := map[string]bool{}
	for _, i := range r.instances() {
		alive[i.ID] = true
	}
	claimed, _ := ec2.ParseProviderID(claim.Status.ProviderID)
	if alive[orphan] || !alive[foreign] || !alive[claimed] {
		t.Errorf("the instance without a claim runs: %t, that of the other cluster: %t, that with a claim: %t; want false, true, true\n%s",
			alive[orphan], alive[foreign], alive[claimed], r.log)
	}
	if !strings.Contains(r.log.String(), "another cluster has our name") {
		t.Error("the log does not mention the cluster with the same name")
	}
	if r.events.find("NodePool/NamesakeSeen", "its uid is another", foreign) == "" {
		t.Errorf("no event on the NodePool reports the cluster with the same name: %v", r.events.emitted)
	}
	if err := r.Sweeper.Instances.Terminate(t.Context(), claimed, ec2.ByTags); err != nil {
		t.Fatal(err)
	}
	r.ahead += 2 * time.Minute
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	if c := onlyClaim(t, r); c.DeletionTimestamp == nil {
		t.Error("the claim whose instance is gone is not deleted")
	}
}
