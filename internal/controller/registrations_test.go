package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

func (r *rig) registrationHealth(t *testing.T) metav1.Condition {
	t.Helper()
	if _, err := r.Pools.Reconcile(t.Context(), named("apps")); err != nil {
		t.Fatal(err)
	}
	c, _ := r.pool(t).StatusConditions().Find(karpv1.ConditionNodeRegistrationHealthy)
	return c
}

// TestRegistrationHealth: the condition is Unknown before the first launch, and again after a change of the node class.
// It is True after a node has joined, also after a restart, and False when most launches failed.
func TestRegistrationHealth(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	if c := r.registrationHealth(t); c.Status != metav1.ConditionUnknown {
		t.Fatalf("before the first launch: %+v, want Unknown", c)
	}
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	if c := r.registrationHealth(t); c.Status != metav1.ConditionTrue {
		t.Fatalf("after a node has joined: %+v, want True\n%s", c, r.log)
	}
	r.start(t)
	if c := r.registrationHealth(t); c.Status != metav1.ConditionTrue {
		t.Fatalf("after a restart: %+v, want True", c)
	}
	claim := r.claims(t)[0]
	r.Claims.Registrations.Note(&claim, false)
	if c := r.registrationHealth(t); c.Status != metav1.ConditionTrue {
		t.Fatalf("after one failure: %+v, want True", c)
	}
	r.Claims.Registrations.Note(&claim, false)
	if c := r.registrationHealth(t); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "2 of the last 3 launches") {
		t.Fatalf("after two failures: %+v, want False", c)
	}
	foreign := claim.DeepCopy()
	foreign.OwnerReferences[0].UID = "uid-of-another"
	for range 4 {
		r.Claims.Registrations.Note(foreign, true)
	}
	if c := r.registrationHealth(t); c.Status != metav1.ConditionFalse {
		t.Fatalf("launches of another pool with the same name count: %+v, want False", c)
	}
	class := r.class(t)
	class.Generation++
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if c := r.registrationHealth(t); c.Status != metav1.ConditionUnknown {
		t.Fatalf("after a change of the node class: %+v, want Unknown", c)
	}
	if until, why := r.Pools.LaunchBackoff.Held(r.now(), "apps"); !until.IsZero() {
		t.Errorf("the pool is still held: %s", why)
	}
}

// TestLaunchBeforeARestartCounts: a node has joined, and the process ends before it writes the pool's condition. The
// next process writes the condition.
func TestLaunchBeforeARestartCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.ahead += time.Minute
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	r.start(t)
	if c := r.registrationHealth(t); c.Status != metav1.ConditionTrue {
		t.Fatalf("the next process writes the condition %+v, want True\n%s", c, r.log)
	}
}

func TestRegistrationTimeoutCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	r.ahead += lifecycle.RegistrationTimeout + time.Minute
	r.reconcileClaims(t)
	if known, failed := r.Claims.Registrations.Of(r.pool(t)).Count(); known != 1 || failed != 1 {
		t.Errorf("%d of %d launches failed, want 1 of 1\n%s", failed, known, r.log)
	}
}

// TestNodeWithLessCapacity: if a node has less capacity than its instance type, a condition of its claim and an event
// report it. The node is not disrupted.
func TestNodeWithLessCapacity(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.createServing(t, "web")[0]
	wait := r.reconcileClaim(t, claim.Name)
	if c, _ := r.claim(t, claim.Name).StatusConditions().Find(karpv1.ConditionConsistentStateFound); c.Status != metav1.ConditionTrue ||
		wait <= 0 || wait > lifecycle.CapacityCheckInterval {
		t.Fatalf("the condition is %+v, want True; the claim is reconciled again in %s", c, wait)
	}
	node := r.nodes(t)[0]
	memory := node.Status.Capacity["memory"]
	memory.Set(memory.Value() / 2)
	node.Status.Capacity["memory"] = memory
	if err := r.api.Status().Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	r.reconcileClaim(t, claim.Name)
	c, _ := r.claim(t, claim.Name).StatusConditions().Find(karpv1.ConditionConsistentStateFound)
	if c.Status != metav1.ConditionFalse || c.Reason != karpv1.ReasonConsistencyCheckFailed || !strings.Contains(c.Message, "memory") {
		t.Errorf("with half of the memory, the condition is %+v, want False ConsistencyCheckFailed", c)
	}
	if r.events.find("NodeClaim/FailedConsistencyCheck", "memory") == "" {
		t.Error("no event reports the missing memory")
	}
	if got := r.claim(t, claim.Name); !got.StatusConditions().IsReady() || got.DeletionTimestamp != nil {
		t.Error("the claim is deleted or no longer ready")
	}
}

func TestOlderObjectsAreLabelled(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.createServing(t, "web")[0]
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
	r.reconcileClaim(t, claim.Name)
	if got := r.claim(t, claim.Name).Labels[key]; got != "default" {
		t.Errorf("the label of the claim is %q, want default\n%s", got, r.log)
	}
	if got := r.nodes(t)[0].Labels[key]; got != "default" {
		t.Errorf("the label of the Node is %q, want default\n%s", got, r.log)
	}
}
