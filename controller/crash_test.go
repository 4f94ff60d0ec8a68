package controller

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// TestCrashBetweenAnyTwoWrites kills the process after each of its writes in turn, to the API server or to AWS, on the way
// up and on the way down, and starts it again with an empty memory. However it dies, the pod ends on one node, nothing
// is bought twice, and nothing is left in the end.
func TestCrashBetweenAnyTwoWrites(t *testing.T) {
	t.Parallel()
	writes := upAndDown(t, newRig(t, "t3.medium"), unlimited)
	if writes < 12 {
		t.Fatalf("only %d writes from a pod to a node and back", writes)
	}
	for n := range writes {
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			t.Parallel()
			upAndDown(t, newRig(t, "t3.medium"), n)
		})
	}
}

// upAndDown leads one pod to a node and away again; the process dies after so many writes. It returns how many there were.
func upAndDown(t *testing.T, r *rig, crashAfter int) int {
	t.Helper()
	r.classes(t)
	r.pending(t, "web", "500m", "512Mi")
	r.fuse.set(crashAfter)
	r.rise(t)
	up := r.fuse.writes
	if crashAfter <= up {
		r.restart(t)
		r.rise(t)
	}
	if n := len(r.instances()); n != 1 || len(r.claims(t)) != 1 {
		t.Fatalf("%d instances and %d claims for one pod\n%s", n, len(r.claims(t)), r.log)
	}
	if claim := r.claims(t)[0]; !claim.StatusConditions().IsReady() {
		t.Fatalf("the claim is not ready: %+v\n%s", claim.Status.Conditions, r.log)
	}
	if err := r.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("ns")); err != nil && crashAfter == unlimited {
		t.Fatal(err)
	}
	r.fall(t)
	if r.isDead() {
		r.restart(t)
		r.fall(t)
	}
	if len(r.instances())+len(r.claims(t))+len(r.nodes(t)) > 0 {
		t.Errorf("left: %d instances, %d claims, %d nodes\n%s", len(r.instances()), len(r.claims(t)), len(r.nodes(t)), r.log)
	}
	return r.fuse.writes
}

// restart begins anew with an empty memory and a whole fuse.
func (r *rig) restart(t *testing.T) {
	t.Helper()
	r.fuse.set(unlimited)
	r.ahead += 5 * time.Second
	r.start(t)
}

// rise runs the loops until the pod's node is ready, or it is clear that it will not be.
func (r *rig) rise(t *testing.T) {
	t.Helper()
	for range 20 {
		if len(r.claims(t)) == 0 {
			r.plan(t)
		}
		r.ahead += r.work(t)
		r.join(t)
		claims := r.claims(t)
		if len(claims) > 0 && claims[0].StatusConditions().IsTrue(karpv1.ConditionInitialized) {
			return
		}
		if r.isDead() {
			return
		}
	}
}

// fall runs the loops until nothing is left, or it is clear that something will be.
func (r *rig) fall(t *testing.T) {
	t.Helper()
	for range 30 {
		if len(r.claims(t)) == 0 || r.isDead() {
			return
		}
		_ = r.Emptiness.pass(t.Context(), r.now()) // what it could not write, it writes the next time
		r.ahead += r.work(t)
	}
}

func (r *rig) isDead() bool {
	r.fuse.mu.Lock()
	defer r.fuse.mu.Unlock()
	return r.fuse.left == 0
}
