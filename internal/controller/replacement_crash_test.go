package controller

import (
	"fmt"
	"testing"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// TestCrashWhileReplacing ends the process after each of its writes in turn, from the expiration of a node until the
// node is gone, and restarts it with an empty memory. Each time, one replacement is launched, and is ready before the
// node is deleted.
func TestCrashWhileReplacing(t *testing.T) {
	t.Parallel()
	crashAfterEachWrite(t, 12, replaceWithCrash)
}

// crashAfterEachWrite calls run once without a crash, and then once for each write before which the process ends. run
// returns the number of writes. Without a crash, there must be at least minWrites.
func crashAfterEachWrite(t *testing.T, minWrites int, run func(t *testing.T, crashAfter int) int) {
	t.Helper()
	writes := run(t, unlimited)
	if writes < minWrites {
		t.Fatalf("%d writes without a crash, want at least %d", writes, minWrites)
	}
	for n := range writes {
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			t.Parallel()
			run(t, n)
		})
	}
}

// replaceWithCrash runs the loops from the expiration of a node until the node is gone. The process ends after
// crashAfter writes, and another process continues. The result is the number of writes of the first process.
func replaceWithCrash(t *testing.T, crashAfter int) int {
	t.Helper()
	r := newRig(t, "t3.medium")
	old := r.createServing(t, "web")[0].Name
	r.age(t, old, tooOld)
	r.fuse.set(crashAfter)
	r.runUntilGone(t, old)
	writes := r.fuse.writes()
	if r.isDead() {
		r.restart(t)
		r.runUntilGone(t, old)
	}
	claims := r.claims(t)
	if len(r.instances()) != 1 || len(r.nodes(t)) != 1 || len(claims) != 1 || claims[0].Name == old ||
		!claims[0].StatusConditions().IsReady() {
		t.Errorf("remaining: %d instances, %d nodes, %d claims; want one of each, ready and not the old one\n%s", len(r.instances()),
			len(r.nodes(t)), len(claims), r.log)
	}
	if n := len(r.estate.Region.Instances.All()); n != 2 {
		t.Errorf("%d instances were launched in all, want 2\n%s", n, r.log)
	}
	return writes
}

// runUntilGone runs the loops until the old claim is gone, or the process has ended. It fails the test if the old claim
// is deleted before another claim is initialized.
func (r *rig) runUntilGone(t *testing.T, old string) {
	t.Helper()
	for range 40 {
		r.plan(t)
		r.ahead += r.reconcileClaims(t) // until the claims are due again
		r.join(t)
		claim := r.claim(t, old)
		if claim == nil || r.isDead() {
			return
		}
		if claim.DeletionTimestamp == nil {
			continue
		}
		if next := r.otherClaim(t, old); !next.StatusConditions().IsTrue(karpv1.ConditionInitialized) {
			t.Fatalf("the old claim is deleted, and %s is not initialized\n%s", next.Name, r.log)
		}
	}
}

// TestCrashWhileResizing ends the process after each of its writes in turn while a static pool gets two nodes, and one
// of them is removed again. In each case, the pool ends with the number of nodes in its spec.
func TestCrashWhileResizing(t *testing.T) {
	t.Parallel()
	crashAfterEachWrite(t, 12, resizeWithCrash)
}

// resizeWithCrash gives a static pool two nodes and then one. The process ends after crashAfter writes, and another
// process continues. The result is the number of writes of the last process.
func resizeWithCrash(t *testing.T, crashAfter int) int {
	t.Helper()
	const neverReached = 5 // limit of nodes
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.makeStatic(t, 2, neverReached) // before writes are counted
	r.fuse.set(crashAfter)
	for _, size := range []int{2, 1} {
		r.makeStatic(t, int64(size), neverReached)
		r.runUntilSize(t, size)
		if r.isDead() {
			r.restart(t)
			r.makeStatic(t, int64(size), neverReached) // creates the loop again
			r.runUntilSize(t, size)
		}
		if len(r.instances()) != size || len(r.nodes(t)) != size || len(r.claims(t)) != size {
			t.Fatalf("%d instances, %d nodes, %d claims; want %d\n%s", len(r.instances()), len(r.nodes(t)), len(r.claims(t)), size, r.log)
		}
	}
	if n := len(r.estate.Region.Instances.All()); n != 2 {
		t.Errorf("%d instances were launched in all, want 2\n%s", n, r.log)
	}
	return r.fuse.writes()
}

func (r *rig) runUntilSize(t *testing.T, size int) {
	t.Helper()
	for range 40 {
		r.reconcileStaticPool(t)
		r.ahead += r.reconcileClaims(t) // until the claims are due again
		r.join(t)
		ready := 0
		claims := r.claims(t)
		for i := range claims {
			if claims[i].StatusConditions().IsReady() {
				ready++
			}
		}
		if ready == size && len(claims) == size || r.isDead() {
			return
		}
	}
}
