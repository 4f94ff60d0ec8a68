package controller

import (
	"fmt"
	"testing"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// TestCrashWhileReplacing ends the process after each of its writes in turn, from the expiration of a node to its end,
// and restarts it with an empty memory. In each case one other node is launched in its place, and is ready before the
// old one goes.
func TestCrashWhileReplacing(t *testing.T) {
	t.Parallel()
	afterEachWrite(t, 12, replaced)
}

// afterEachWrite runs play once without a crash, and then once for each of its writes, of which there must be at least
// the given number. play crashes after the given number of writes, and returns how many there were.
func afterEachWrite(t *testing.T, least int, play func(t *testing.T, crashAfter int) int) {
	t.Helper()
	writes := play(t, unlimited)
	if writes < least {
		t.Fatalf("only %d writes in all", writes)
	}
	for n := range writes {
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			t.Parallel()
			play(t, n)
		})
	}
}

// replaced leads one node from its expiration to its end; the process ends after the given number of writes. It returns
// how many there were.
func replaced(t *testing.T, crashAfter int) int {
	t.Helper()
	r := newRig(t, "t3.medium")
	old := r.servingNodes(t, "web")[0].Name
	r.age(t, old, tooOld)
	r.fuse.set(crashAfter)
	r.succeed(t, old)
	writes := r.fuse.writes()
	if r.isDead() {
		r.restart(t)
		r.succeed(t, old)
	}
	claims := r.claims(t)
	if len(r.instances()) != 1 || len(r.nodes(t)) != 1 || len(claims) != 1 || claims[0].Name == old ||
		!claims[0].StatusConditions().IsReady() {
		t.Errorf("remaining: %d instances, %d nodes, %d claims; want one that is ready and new\n%s", len(r.instances()),
			len(r.nodes(t)), len(claims), r.log)
	}
	if n := len(r.estate.Region.Instances.All()); n != 2 {
		t.Errorf("%d instances were launched in all, want 2\n%s", n, r.log)
	}
	return writes
}

// succeed runs the loops until the claim is gone, or the process has ended. The claim goes when another is ready.
func (r *rig) succeed(t *testing.T, old string) {
	t.Helper()
	for range 40 {
		r.plan(t)
		r.ahead += r.work(t)
		r.join(t)
		claim := r.claim(t, old)
		if claim == nil || r.isDead() {
			return
		}
		if claim.DeletionTimestamp == nil {
			continue
		}
		if next := r.other(t, old); !next.StatusConditions().IsTrue(karpv1.ConditionInitialized) {
			t.Fatalf("the node goes and %s is not ready\n%s", next.Name, r.log)
		}
	}
}

// TestCrashWhileRecruiting ends the process after each of its writes in turn while a static pool gets its nodes, and then
// loses one of them. In each case the pool ends with the number of nodes in its spec.
func TestCrashWhileRecruiting(t *testing.T) {
	t.Parallel()
	afterEachWrite(t, 12, recruited)
}

// recruited leads a static pool to two nodes and then to one; the process ends after the given number of writes. It
// returns how many there were.
func recruited(t *testing.T, crashAfter int) int {
	t.Helper()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.static(t, 2, 5)
	r.fuse.set(crashAfter)
	for _, size := range []int{2, 1} {
		r.static(t, int64(size), 5)
		r.fill(t, size)
		if r.isDead() {
			r.restart(t)
			r.static(t, int64(size), 5)
			r.fill(t, size)
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

// fill runs the loops until the pool has the given number of ready nodes and no other, or the process has ended.
func (r *rig) fill(t *testing.T, size int) {
	t.Helper()
	for range 40 {
		r.keep(t)
		r.ahead += r.work(t)
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
