package controller

import (
	"testing"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// TestCrashWhileRefreshing kills the process after each of its writes in turn, from the moment at which a newer image is
// found until all nodes run it. That includes the writes of the drift and class loops: hashes, conditions, what selectors
// find, the good image. However the process dies, all nodes run the newer image in the end, and nothing is left marked,
// tainted or held.
func TestCrashWhileRefreshing(t *testing.T) {
	t.Parallel()
	afterEachWrite(t, 30, refreshed)
}

func refreshed(t *testing.T, crashAfter int) int {
	t.Helper()
	f, _ := goldenPark(t, 2)
	next := f.publish(t, "golden-2")
	f.ahead += driftcheck.DriftListed
	f.fuse.set(crashAfter)
	f.until(t, func() bool { return f.byImage(t)[next] == 2 })
	writes := f.fuse.writes()
	if f.isDead() {
		f.restart(t)
		f.until(t, func() bool { return f.byImage(t)[next] == 2 })
	}
	f.isRefreshed(t, next)
	return writes
}

// TestCrashWhileGoingBack does the same from the moment at which an image is found with which no kubelet starts. The canary
// fails, the image is stored as bad, and the previous one is used again. Then a better image is found, the bad one is
// forgotten, and all nodes get the better one.
func TestCrashWhileGoingBack(t *testing.T) {
	t.Parallel()
	afterEachWrite(t, 40, wentBack)
}

func wentBack(t *testing.T, crashAfter int) int {
	t.Helper()
	f, first := goldenPark(t, 2)
	bad := f.publish(t, "golden-2")
	f.broken[bad] = true
	f.ahead += driftcheck.DriftListed
	f.fuse.set(crashAfter)
	f.lives(t, func() { f.until(t, func() bool { return f.isBack(t, first) }) })
	if got := f.byImage(t); got[first] != 2 || len(got) != 1 {
		t.Fatalf("with an image that is broken the nodes run %v, want both with %s\n%s", got, first, f.tail())
	}
	better := f.publish(t, "golden-3")
	f.ahead += driftcheck.DriftListed
	f.lives(t, func() { f.until(t, func() bool { return f.byImage(t)[better] == 2 }) })
	writes := f.fuse.writes()
	f.isRefreshed(t, better)
	if m := driftcheck.MemoryOf(f.class(t)); len(m.Bad) > 0 || len(m.Good) != 1 || m.Good[0].ID != better {
		t.Errorf("the class remembers %+v, want %s as good and nothing bad", m, better)
	}
	return writes
}

// lives runs a function, and runs it again in a new process if the first dies of it.
func (f *park) lives(t *testing.T, do func()) {
	t.Helper()
	do()
	if f.isDead() {
		f.restart(t)
		do()
	}
}

// isBack reports whether the previous image is used again, and the canary is gone.
func (f *park) isBack(t *testing.T, image string) bool {
	t.Helper()
	class := f.class(t)
	_, isHeld := class.StatusConditions().Find(awsv1.ConditionImageHeldBack)
	return isHeld && len(class.Status.AMIs) == 1 && class.Status.AMIs[0].ID == image && len(driftcheck.MemoryOf(class).Bad) == 1
}

// until runs rounds until the condition holds and no change is in progress, or the process is dead. Pauses are short
// while something happens, and longer otherwise. schedule checks that no pod is without a node meanwhile.
func (f *park) until(t *testing.T, isSo func() bool) {
	t.Helper()
	for range 120 {
		if f.isDead() || isSo() && f.isWhole(t) == "" {
			return
		}
		before := f.text(t)
		f.round(t)
		if f.text(t) == before {
			f.ahead += lifecycle.RegistrationTimeout / 10
		}
	}
	t.Fatalf("it does not converge: %s, %v\n%s\n%s", f.isWhole(t), f.byImage(t), f.text(t), f.tail())
}

// isRefreshed fails the test unless all nodes run the image, and nothing is drifted any more after another round of the loops.
func (f *park) isRefreshed(t *testing.T, image string) {
	t.Helper()
	for range 3 {
		f.ahead += max(driftcheck.DriftListed, driftcheck.DriftSoak)
		f.round(t)
	}
	if why := f.isWhole(t); why != "" || f.byImage(t)[image] != 2 || len(f.claims(t)) != 2 {
		t.Fatalf("%s; the nodes run %v, want both with %s\n%s\n%s", why, f.byImage(t), image, f.text(t), f.tail())
	}
	if got := f.drifted(t, karpv1.ConditionDrifted); len(got) > 0 {
		t.Errorf("still drifted are %v", got)
	}
	if says := f.saysOf(t, karpv1.ConditionDriftHeld); says != "" {
		t.Errorf("the pool still has the condition %q", says)
	}
	for _, n := range f.nodes(t) {
		if !nodestate.IsOpen(&n) {
			t.Errorf("%s takes no pods", n.Name)
		}
	}
	if good, ok := driftcheck.MemoryOf(f.class(t)).GoodOf(driftcheck.ImagesIn(f.class(t))[0].Slot); !ok || good.ID != image {
		t.Errorf("the class remembers %+v as good, want %s", good, image)
	}
}
