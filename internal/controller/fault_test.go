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

// TestShortageIsPlannedAround: an offering that EC2 is short of is not requested again, the claim is deleted, and the pod is
// planned onto another offering at once.
func TestShortageIsPlannedAround(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium", "m5.large")
	r.classes(t)
	r.Do(func(*world.World, time.Time) {
		r.estate.Region.Capacity.Limit(world.Pool{Type: "t3.medium"}, 0)
	})
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	// The plan's claim accepts both types. Restrict it to the cheaper type, which has no capacity.
	claim := r.claims(t)[0]
	only := claim.DeepCopy()
	for i, q := range only.Spec.Requirements {
		if q.Key == "node.kubernetes.io/instance-type" {
			only.Spec.Requirements[i].Values = []string{"t3.medium"}
		}
	}
	only.ObjectMeta = metav1.ObjectMeta{Name: "only", Labels: claim.Labels, Finalizers: claim.Finalizers}
	r.create(t, only)
	r.work(t)
	if r.events.has("NodeClaim/InsufficientCapacityError", "t3.medium") == "" {
		t.Errorf("no event about the shortage: %v", r.events.told)
	}
	r.finishDeleted(t)
	left := r.claims(t)
	if len(left) != 1 || left[0].Name == "only" {
		t.Fatalf("claims left: %d\n%s", len(left), r.log)
	}
	if n := r.instances(); len(n) != 1 || n[0].Type != "m5.large" {
		t.Errorf("launched %+v, want one m5.large", n)
	}
	if !r.Batch().ClosesNow() {
		t.Error("no plan is requested for the pods of the claim")
	}
	for _, typ := range r.Market.Market(time.Now())["default"].Types {
		for _, o := range typ.Offerings {
			if o.CapacityType == "on-demand" && o.Available != (typ.Name == "m5.large") {
				t.Errorf("%s in %s as %s: available %t", typ.Name, o.Zone, o.CapacityType, o.Available)
			}
		}
	}
}

// TestZonesWithoutAddresses: plans avoid a zone whose subnets are full. If all are full, no claim is created that EC2 would
// only refuse, the pod gets an event, and after the wait the zone is tried again.
func TestZonesWithoutAddresses(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	full := func(subnets ...vpc.Subnet) {
		for _, s := range subnets {
			r.Claims.Offers.Shortages.Note(time.Now(), ec2.Short{SubnetID: s.ID, Reason: "InsufficientFreeAddressesInSubnet"})
		}
	}
	subnets := r.subnets()
	full(subnets[0])
	for _, o := range r.Market.Market(time.Now())["default"].Types[0].Offerings {
		if o.Available != (o.Zone != subnets[0].Zone) {
			t.Errorf("%s in %s: available %t, and the subnet in %s is full", o.CapacityType, o.Zone, o.Available, subnets[0].Zone)
		}
	}
	full(subnets[1:]...)
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	if n := len(r.claims(t)); n != 0 {
		t.Errorf("%d claims are created that cannot be launched\n%s", n, r.log)
	}
	if !strings.Contains(r.log.String(), `"refused":1`) {
		t.Errorf("the pod is not refused:\n%s", r.log)
	}
	for _, o := range r.Market.Market(time.Now().Add(ec2.FirstBackoff + time.Second))["default"].Types[0].Offerings {
		if !o.Available {
			t.Errorf("%s in %s is not probed after the wait", o.CapacityType, o.Zone)
		}
	}
}

func (r *rig) Batch() *loop.Batch { return r.Provisioner.Batch }

// finishDeleted reconciles the claims until all deleted claims are gone.
func (r *rig) finishDeleted(t *testing.T) {
	t.Helper()
	for range 20 {
		r.ahead += r.work(t)
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

// TestDeniedLaunchIsToldAndTriedAgain: condition and event name the missing permission, and the pool waits with a condition.
// Once the launch is allowed there is one instance.
func TestDeniedLaunchIsToldAndTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = []world.Denial{{Call: "ec2:CreateFleet"}} })
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	wait := r.work(t)
	launched, _ := findClaim(t, r).StatusConditions().Find(karpv1.ConditionLaunched)
	if launched.Status != "Unknown" || launched.Reason != "Unauthorized" || !strings.Contains(launched.Message, "CreateFleet") {
		t.Errorf("condition: %+v", launched)
	}
	if r.events.has("NodeClaim/LaunchFailed", "CreateFleet") == "" || wait <= 0 {
		t.Errorf("events %v; next try in %s", r.events.told, wait)
	}
	until, cause := r.Provisioner.Holds.Held(r.now(), "apps")
	if until.IsZero() || !strings.Contains(cause, "Unauthorized") {
		t.Errorf("the pool is on hold until %s for %q", until, cause)
	}
	r.pending(t, "more", "1500m", "3Gi")
	r.plan(t)
	if n := len(r.claims(t)); n != 1 {
		t.Errorf("%d claims: the pool was used although its launches fail", n)
	}
	if _, err := r.Pools.Reconcile(t.Context(), named("apps")); err != nil {
		t.Fatal(err)
	}
	if healthy, _ := r.pool(t).StatusConditions().Find(karpv1.ConditionNodeRegistrationHealthy); healthy.Status != "False" ||
		!strings.Contains(healthy.Message, "Unauthorized") {
		t.Errorf("condition of the pool: %+v", healthy)
	}

	r.Do(func(w *world.World, _ time.Time) { w.Faults.Denials = nil })
	r.ahead += wait
	r.work(t)
	if n := len(r.instances()); n != 1 || findClaim(t, r).Status.ProviderID == "" {
		t.Errorf("%d instances after it was allowed\n%s", n, r.log)
	}
	if until, _ := r.Provisioner.Holds.Held(r.now(), "apps"); !until.IsZero() {
		t.Errorf("the pool is still on hold until %s", until)
	}
}

func findClaim(t *testing.T, r *rig) *karpv1.NodeClaim {
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

// TestLateClaimStopsNobody: a claim whose instance does not join does not delay plans or other claims.
func TestLateClaimStopsNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "late", "1500m", "3Gi")
	r.plan(t)
	r.work(t) // launched, and never joins
	r.pending(t, "next", "1500m", "3Gi")
	r.plan(t)
	r.work(t)
	if n := len(r.instances()); n != 2 {
		t.Fatalf("%d instances for two pods that need one each\n%s", n, r.log)
	}
	r.ahead += 15 * time.Minute
	r.finishDeleted(t)
	if len(r.instances())+len(r.claims(t)) > 0 {
		t.Errorf("%d instances and %d claims are left that did not join in time", len(r.instances()), len(r.claims(t)))
	}
	if r.events.has("NodeClaim/NodeNotJoining") == "" {
		t.Errorf("no event was emitted: %v", r.events.told)
	}
	if _, why := r.Provisioner.Holds.Held(r.now(), "apps"); !strings.Contains(why, "did not join the cluster 1 time in a row") {
		t.Errorf("two instances launched at once did not join, but the pool is on hold: %q", why)
	}
}

// TestRefusedPodIsTold: a pod that fits nowhere gets an event with the reason in words and as a code.
func TestRefusedPodIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "huge", "64", "64Gi")
	r.plan(t)
	r.drip()
	if len(r.claims(t)) > 0 || r.events.has("Pod/FailedScheduling", string(packing.TooSmall)) == "" {
		t.Errorf("%d claims; events %v", len(r.claims(t)), r.events.told)
	}
}

// drip emits queued events at once.
func (r *rig) drip() {
	for e, ok := r.Provisioner.Events.Next(); ok; e, ok = r.Provisioner.Events.Next() {
		r.events.Emit(e.About, e.Reason, e.Message)
	}
}

// TestSweeperOnTheRealThing: an instance of ours without a claim is terminated, that of another cluster with the same name
// is not, and a claim whose instance is gone is deleted.
func TestSweeperOnTheRealThing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.work(t)
	claim := findClaim(t, r)
	launch := func(uid string) string {
		awsClient, err := ec2.New(r.cfg(), ec2.Cluster{Name: testCluster, UID: uid})
		if err != nil {
			t.Fatal(err)
		}
		request, err := r.Claims.Offers.Request(claim, r.class(t), 0, r.now())
		if err != nil {
			t.Fatal(err)
		}
		request.Claim, request.ClaimUID = "nobody", "uid-of-nobody-"+uid
		bought, err := awsClient.Launch(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return bought.Instance.ID
	}
	lost, theirs := launch(testUID), launch("another")
	r.ahead += time.Minute
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	alive := map[string]bool{}
	for _, i := range r.instances() {
		alive[i.ID] = true
	}
	mine, _ := ec2.ParseProviderID(claim.Status.ProviderID)
	if alive[lost] || !alive[theirs] || !alive[mine] {
		t.Errorf("alive: lost %t, theirs %t, with a claim %t\n%s", alive[lost], alive[theirs], alive[mine], r.log)
	}
	if !strings.Contains(r.log.String(), "another cluster has our name") {
		t.Error("the namesake is not mentioned")
	}
	if r.events.has("NodePool/NamesakeSeen", "its uid is another", theirs) == "" {
		t.Errorf("NodePools are not told of it: %v", r.events.told)
	}
	if err := r.Sweeper.Machines.Terminate(t.Context(), mine, ec2.ByTags); err != nil {
		t.Fatal(err)
	}
	r.ahead += 2 * time.Minute
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	if c := findClaim(t, r); c.DeletionTimestamp == nil {
		t.Error("the claim whose instance is gone stays")
	}
}
