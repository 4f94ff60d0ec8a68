package controller

import (
	"testing"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// TestCrashWhileRefreshing kills the process after each of its writes in turn, from the moment at which a newer image
// is found until all nodes run it. These include the writes of the drift and class loops: hashes, conditions, resolved
// selectors, the good image. In each case, all nodes run the newer image in the end, and no node is marked, tainted or
// held.
func TestCrashWhileRefreshing(t *testing.T) {
	t.Parallel()
	crashAfterEachWrite(t, 30, refreshWithCrash) // at least 30 writes
}

// refreshWithCrash rolls out a newer image; the process dies after the given number of writes. It returns the number of
// writes.
func refreshWithCrash(t *testing.T, crashAfter int) int {
	t.Helper()
	f, _ := goldenRig(t, 2)
	next := f.publish(t, "golden-2")
	f.ahead += driftcheck.MaxListAge
	f.fuse.set(crashAfter)
	f.until(t, func() bool { return f.byImage(t)[next] == 2 })
	writes := f.fuse.writes()
	if f.isDead() {
		f.restart(t)
		f.until(t, func() bool { return f.byImage(t)[next] == 2 })
	}
	f.wantRefreshed(t, next)
	return writes
}

// TestCrashWhileRollingBack kills the process after each of its writes in turn, from the moment at which an image is
// found with which no kubelet starts. The canary fails, the image is stored as bad, and the previous image is used
// again. Then a better image is found, the bad one is forgotten, and all nodes get the better one.
func TestCrashWhileRollingBack(t *testing.T) {
	t.Parallel()
	crashAfterEachWrite(t, 40, rollBackWithCrash) // at least 40 writes
}

// rollBackWithCrash rolls out a broken image and then a better one; the process dies after the given number of writes.
// It returns the number of writes.
func rollBackWithCrash(t *testing.T, crashAfter int) int {
	t.Helper()
	f, first := goldenRig(t, 2)
	bad := f.publish(t, "golden-2")
	f.broken[bad] = true
	f.ahead += driftcheck.MaxListAge
	f.fuse.set(crashAfter)
	f.retryAfterCrash(t, func() { f.until(t, func() bool { return f.isRolledBack(t, first) }) })
	if got := f.byImage(t); got[first] != 2 || len(got) != 1 {
		t.Fatalf("after the broken image the nodes run %v, want both with %s\n%s", got, first, f.tail())
	}
	better := f.publish(t, "golden-3")
	f.ahead += driftcheck.MaxListAge
	f.retryAfterCrash(t, func() { f.until(t, func() bool { return f.byImage(t)[better] == 2 }) })
	writes := f.fuse.writes()
	f.wantRefreshed(t, better)
	if h := driftcheck.ImageHistoryOf(f.class(t)); len(h.Bad) > 0 || len(h.Good) != 1 || h.Good[0].ID != better {
		t.Errorf("the class stores %+v, want %s as good and nothing bad", h, better)
	}
	return writes
}

// retryAfterCrash calls do. If the process dies meanwhile, it starts the next process and calls do again.
func (f *replicaRig) retryAfterCrash(t *testing.T, do func()) {
	t.Helper()
	do()
	if f.isDead() {
		f.restart(t)
		do()
	}
}

// isRolledBack reports whether the class uses the previous image again, and holds back one bad image.
func (f *replicaRig) isRolledBack(t *testing.T, image string) bool {
	t.Helper()
	class := f.class(t)
	_, isHeld := class.StatusConditions().Find(awsv1.ConditionImageHeldBack)
	return isHeld && len(class.Status.AMIs) == 1 && class.Status.AMIs[0].ID == image && len(driftcheck.ImageHistoryOf(class).Bad) == 1
}

// until runs rounds until isDone is true and no change is in progress, or the process is dead. After a round that
// changes nothing, the pause is longer. Each round fails the test if a pod finds no node.
func (f *replicaRig) until(t *testing.T, isDone func() bool) {
	t.Helper()
	for range 120 {
		if f.isDead() || isDone() && f.unfinished(t) == "" {
			return
		}
		before := f.describe(t)
		f.round(t)
		if f.describe(t) == before {
			f.ahead += lifecycle.RegistrationTimeout / 10
		}
	}
	t.Fatalf("the nodes do not converge: %s, %v\n%s\n%s", f.unfinished(t), f.byImage(t), f.describe(t), f.tail())
}

// wantRefreshed runs three more rounds, then fails the test unless both nodes run the image and are untainted, no claim
// drifts, and the image is stored as good.
func (f *replicaRig) wantRefreshed(t *testing.T, image string) {
	t.Helper()
	for range 3 {
		f.ahead += max(driftcheck.MaxListAge, driftcheck.FitAfter)
		f.round(t)
	}
	if why := f.unfinished(t); why != "" || f.byImage(t)[image] != 2 || len(f.claims(t)) != 2 {
		t.Fatalf("%s; the nodes run %v, want both with %s\n%s\n%s", why, f.byImage(t), image, f.describe(t), f.tail())
	}
	if got := f.conditionTexts(t, karpv1.ConditionDrifted); len(got) > 0 {
		t.Errorf("claims still drift: %v", got)
	}
	if message := f.poolMessage(t, karpv1.ConditionDriftHeld); message != "" {
		t.Errorf("the pool still has the condition DriftHeld: %q", message)
	}
	for _, n := range f.nodes(t) {
		if !nodestate.IsOpen(&n) {
			t.Errorf("%s takes no pods", n.Name)
		}
	}
	if good, ok := driftcheck.ImageHistoryOf(f.class(t)).GoodOf(driftcheck.ImagesIn(f.class(t))[0].Slot); !ok || good.ID != image {
		t.Errorf("the class remembers %+v as good, want %s", good, image)
	}
}
