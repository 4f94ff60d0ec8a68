package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// healthy reconciles the pool, and returns its condition about launches.
func (r *rig) healthy(t *testing.T) metav1.Condition {
	t.Helper()
	if _, err := r.Pools.Reconcile(t.Context(), named("apps")); err != nil {
		t.Fatal(err)
	}
	c, _ := r.pool(t).StatusConditions().Find(karpv1.ConditionNodeRegistrationHealthy)
	return c
}

// TestPoolSaysHowItsLaunchesWent: the condition is Unknown until there is a launch, and again after a change of the pool or its node class;
// it persists across restarts.
func TestPoolSaysHowItsLaunchesWent(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	if c := r.healthy(t); c.Status != metav1.ConditionUnknown {
		t.Fatalf("before the first launch: %+v", c)
	}
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.work(t)
	r.join(t)
	r.work(t)
	if c := r.healthy(t); c.Status != metav1.ConditionTrue {
		t.Fatalf("after a node has joined: %+v\n%s", c, r.log)
	}
	r.start(t)
	if c := r.healthy(t); c.Status != metav1.ConditionTrue {
		t.Fatalf("after a restart: %+v", c)
	}
	claim := r.claims(t)[0]
	r.Claims.Registrations.Note(&claim, false)
	if c := r.healthy(t); c.Status != metav1.ConditionTrue {
		t.Fatalf("after one failure: %+v", c)
	}
	r.Claims.Registrations.Note(&claim, false)
	if c := r.healthy(t); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "2 of the last 3 launches") {
		t.Fatalf("after two: %+v", c)
	}
	foreign := claim.DeepCopy()
	foreign.OwnerReferences[0].UID = "uid-of-another"
	for range 4 {
		r.Claims.Registrations.Note(foreign, true)
	}
	if c := r.healthy(t); c.Status != metav1.ConditionFalse {
		t.Fatalf("another pool's launches count: %+v", c)
	}
	class := r.class(t)
	class.Generation++
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if c := r.healthy(t); c.Status != metav1.ConditionUnknown {
		t.Fatalf("the node class was changed: %+v", c)
	}
	if until, why := r.Pools.Holds.Held(r.now(), "apps"); !until.IsZero() {
		t.Errorf("the pool still waits: %s", why)
	}
}

// TestPoolHearsOfLaunchesBeforeACrash: a node has joined, and the process ends before it writes the pool's condition.
func TestPoolHearsOfLaunchesBeforeACrash(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.ahead += time.Minute
	r.work(t)
	r.join(t)
	r.work(t)
	r.start(t)
	if c := r.healthy(t); c.Status != metav1.ConditionTrue {
		t.Fatalf("the next process: %+v\n%s", c, r.log)
	}
}

// TestLaunchesThatDoNotJoinCount: a registration timeout is a failure of its pool.
func TestLaunchesThatDoNotJoinCount(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.work(t)
	r.ahead += lifecycle.RegistrationTimeout + time.Minute
	r.work(t)
	if known, failed := r.Claims.Registrations.Of(r.pool(t)).Count(); known != 1 || failed != 1 {
		t.Errorf("%d of %d launches failed, want 1 of 1\n%s", failed, known, r.log)
	}
}

// TestNodeIsHeldAgainstItsPromise: a node with less capacity than its type has a condition on its claim, and is not disrupted for it.
func TestNodeIsHeldAgainstItsPromise(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.servingNodes(t, "web")[0]
	wait := r.visit(t, claim.Name)
	if c, _ := r.claim(t, claim.Name).StatusConditions().Find(karpv1.ConditionConsistentStateFound); c.Status != metav1.ConditionTrue ||
		wait <= 0 || wait > lifecycle.CheckEvery {
		t.Fatalf("%+v, reconciled again in %s", c, wait)
	}
	node := r.nodes(t)[0]
	memory := node.Status.Capacity["memory"]
	memory.Set(memory.Value() / 2)
	node.Status.Capacity["memory"] = memory
	if err := r.api.Status().Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	r.visit(t, claim.Name)
	c, _ := r.claim(t, claim.Name).StatusConditions().Find(karpv1.ConditionConsistentStateFound)
	if c.Status != metav1.ConditionFalse || c.Reason != karpv1.ReasonConsistencyCheckFailed || !strings.Contains(c.Message, "memory") {
		t.Errorf("%+v", c)
	}
	if r.events.has("NodeClaim/FailedConsistencyCheck", "memory") == "" {
		t.Error("it was not reported")
	}
	if got := r.claim(t, claim.Name); !got.StatusConditions().IsReady() || got.DeletionTimestamp != nil {
		t.Error("the condition has an effect beyond reporting")
	}
}

// TestOlderObjectsAreLabelled: claims and Nodes from before the node class label existed get it.
func TestOlderObjectsAreLabelled(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.servingNodes(t, "web")[0]
	const key = "karpenter.k8s.aws/ec2nodeclass"
	delete(claim.Labels, key)
	if err := r.api.Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	node := r.nodes(t)[0]
	delete(node.Labels, key)
	if err := r.api.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	r.start(t)
	r.visit(t, claim.Name)
	if got := r.claim(t, claim.Name).Labels[key]; got != "default" {
		t.Errorf("the label of the claim is %q\n%s", got, r.log)
	}
	if got := r.nodes(t)[0].Labels[key]; got != "default" {
		t.Errorf("the label of the Node is %q\n%s", got, r.log)
	}
}
