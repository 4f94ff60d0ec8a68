package controller

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/diagnoser"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// launchReplacement runs the loops until a replacement is launched, which does not join, and returns its claim.
func (f *replicaRig) launchReplacement(t *testing.T) karpv1.NodeClaim {
	t.Helper()
	f.noJoin = true
	for range 5 {
		f.round(t)
		for _, c := range f.claims(t) {
			if c.Annotations[nodestate.AnnotationReplaces] != "" && c.Status.ProviderID != "" {
				return c
			}
		}
	}
	t.Fatalf("no replacement was launched\n%s\n%s", f.describe(t), f.tail())
	return karpv1.NodeClaim{}
}

// moveTraces names a claim that has the mark of a move, or a node that accepts no pods; empty if there is neither.
func (f *replicaRig) moveTraces(t *testing.T) string {
	t.Helper()
	for _, c := range f.claims(t) {
		if _, isMarked := c.StatusConditions().Find(karpv1.ConditionDisruptionReason); c.Annotations[nodestate.AnnotationMove] != "" || isMarked {
			return c.Name + " has the mark of a move"
		}
	}
	for _, n := range f.nodes(t) {
		if !nodestate.IsOpen(&n) {
			return n.Name + " accepts no pods"
		}
	}
	return ""
}

// TestLostReplacementUndoesAtOnce: as soon as the replacement is gone, for any reason, the next run of the loops undoes
// the move, and the old node accepts pods again.
func TestLostReplacementUndoesAtOnce(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, f *replicaRig, c karpv1.NodeClaim){
		"its claim is deleted": func(t *testing.T, f *replicaRig, c karpv1.NodeClaim) { f.check(t, f.api.Delete(t.Context(), &c)) },
		"its claim is gone": func(t *testing.T, f *replicaRig, c karpv1.NodeClaim) {
			c.Finalizers = nil
			f.check(t, f.api.Update(t.Context(), &c))
			f.check(t, f.api.Delete(t.Context(), &c))
		},
		"its instance is gone": func(t *testing.T, f *replicaRig, c karpv1.NodeClaim) {
			f.Do(func(_ *world.World, now time.Time) {
				for _, i := range f.estate.Region.Instances.All() {
					if i.Type == "t3.medium" {
						_, _, err := f.estate.Region.Instances.Terminate(now, []string{i.ID})
						f.check(t, err)
					}
				}
			})
			for range 20 { // five minutes: EC2 may return a new instance only some time after the launch
				f.ahead += 15 * time.Second
				f.check(t, f.Sweeper.Pass(t.Context(), f.now()))
				if left := f.claim(t, c.Name); left == nil || left.DeletionTimestamp != nil {
					return
				}
			}
			t.Fatalf("the loops did not detect that the instance is gone\n%s", f.tail())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newReplicaRig(t, 1, "6500m", "900m", "m5.2xlarge", "t3.medium")
			c := f.launchReplacement(t)
			if f.moveTraces(t) == "" {
				t.Fatalf("the old node was not tainted\n%s", f.describe(t))
			}
			lose(t, f, c)
			f.runDisruption(t)
			if why := f.moveTraces(t); why != "" {
				t.Fatalf("%s\n%s\n%s", why, f.describe(t), f.tail())
			}
			if f.events.find("NodeClaim/DisruptionUndone", "the move was undone") == "" {
				t.Errorf("no event reports that the move was undone: %v", f.events.emitted)
			}
		})
	}
}

// TestUnjoinedReplacementUndoesAtOnce: as soon as it is known why the replacement does not join, the old node accepts
// pods again, and the pool launches nothing more. The replacement is kept until the registration timeout. If the cause
// is fixed before, the replacement joins, and the old node is removed.
func TestUnjoinedReplacementUndoesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLateRig(t, "off", "m5.2xlarge", "t3.medium")
		l.mapRole(t)
		f := replicaRigOn(t, l.rig, 1, "6500m", "900m")
		l.Diagnoses.Now = l.now
		l.Do(func(*world.World, time.Time) {
			f.check(t, l.estate.Region.EKS.DeleteAccessEntry(testCluster, "arn:aws:iam::"+emulator.DefaultAccount+":role/node"))
		})
		c := f.launchReplacement(t)
		f.ahead += l.Diagnoses.After
		f.check(t, f.Moves.Advance(t.Context()))
		if f.moveTraces(t) == "" {
			t.Fatalf("the move was undone before the cause was known\n%s", f.tail())
		}
		l.diagnose(t)
		f.check(t, f.Moves.Advance(t.Context()))
		if why := f.moveTraces(t); why != "" {
			t.Fatalf("%s\n%s\n%s", why, f.describe(t), f.tail())
		}
		if f.events.find("NodeClaim/DisruptionUndone", "replacement NodeClaim "+c.Name+" does not join the cluster: "+unmapped) == "" {
			t.Errorf("no event names the cause: %v", f.events.emitted)
		}
		f.ahead += 2 * disruptor.FirstHold
		for range 3 {
			f.round(t)
		}
		if f.moveTraces(t) != "" || len(f.claims(t)) != 2 || len(f.instances()) != 2 {
			t.Fatalf("the move was repeated, or its replacement did not stay\n%s\n%s", f.describe(t), f.tail())
		}
		l.mapRole(t)
		f.noJoin = false
		f.ahead += diagnoser.IntervalWithFindings
		l.diagnose(t)
		f.converge(t)
		if got := f.typeCounts(); got != "1 t3.medium" {
			t.Errorf("remaining: %s, want 1 t3.medium\n%s\n%s", got, f.describe(t), f.tail())
		}
	})
}

// TestUnjoinedReplacementIsDeleted: a replacement that does not join is deleted after its registration timeout,
// although its move was undone before.
func TestUnjoinedReplacementIsDeleted(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 1, "6500m", "900m", "m5.2xlarge", "t3.medium")
	c := f.launchReplacement(t)
	f.Moves.Diagnoses = &diagnoser.Diagnoser{Verdicts: map[types.UID]diagnoser.Verdict{c.UID: {Check: "AUTH-5",
		Message: "its role is not mapped", Certain: true}}}
	f.check(t, f.Moves.Advance(t.Context()))
	if why := f.moveTraces(t); why != "" || len(f.instances()) != 2 {
		t.Fatalf("%s; %d instances, want 2 and no trace of the move\n%s", why, len(f.instances()), f.tail())
	}
	f.ahead += lifecycle.RegistrationTimeout
	f.finishDeleted(t)
	for range 5 {
		f.reconcileClaims(t)
		f.ahead += time.Minute
	}
	if len(f.instances()) != 1 || len(f.claims(t)) != 1 {
		t.Errorf("remaining: %d instances, %d claims; want one each\n%s", len(f.instances()), len(f.claims(t)), f.tail())
	}
}

// TestUnfitReplacementUndoes: if a replacement has joined, but is not initialized within DefaultInitializationTimeout,
// the move is undone and the replacement is terminated. The target of the move is recorded as failed, so that no
// further nodes are replaced with it.
func TestUnfitReplacementUndoes(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 1, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.Moves.Drift = f.Drift
	c := f.launchReplacement(t)
	node := f.nodeOf(t, c)
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	f.create(t, node)
	f.reconcileClaims(t)
	f.ahead += replacement.DefaultInitializationTimeout - time.Minute
	f.check(t, f.Moves.Advance(t.Context()))
	if f.moveTraces(t) == "" {
		t.Fatalf("the move was undone a minute before the timeout\n%s", f.tail())
	}
	f.ahead += time.Minute
	f.check(t, f.Moves.Advance(t.Context()))
	if why := f.moveTraces(t); why != "" {
		t.Fatalf("%s\n%s\n%s", why, f.describe(t), f.tail())
	}
	if f.events.find("NodeClaim/DisruptionUndone",
		c.Name+" has joined but was not ready for pods within 10m0s: the Node is not ready") == "" {
		t.Errorf("no event names the cause: %v", f.events.emitted)
	}
	if failed := driftcheck.FailuresOf(f.pool(t)); len(failed) != 1 {
		t.Errorf("the pool stores the failures %v, want one", failed)
	}
	if left := f.claim(t, c.Name); left != nil && left.DeletionTimestamp == nil {
		t.Error("the claim of the replacement is not deleted")
	}
}

// TestFitWithinOfSlowPools: in pools whose nodes take long to initialize, a replacement may take twice the median of
// the pool.
func TestFitWithinOfSlowPools(t *testing.T) {
	t.Parallel()
	registered := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	claim := func(pool string, took time.Duration) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{}
		c.Labels = map[string]string{karpv1.LabelNodePool: pool}
		c.StatusConditions().SetTrue(registered, karpv1.ConditionRegistered)
		if took > 0 {
			c.StatusConditions().SetTrue(registered.Add(took), karpv1.ConditionInitialized)
		}
		return c
	}
	claims := []*karpv1.NodeClaim{claim("gpu", 6*time.Minute), claim("gpu", 8*time.Minute), claim("gpu", 9*time.Minute),
		claim("web", time.Minute)}
	for pool, want := range map[string]time.Duration{
		"gpu": 16 * time.Minute,
		"web": replacement.DefaultInitializationTimeout,
		"new": replacement.DefaultInitializationTimeout,
	} {
		if got := loop.InitializationTimeout(claims, []*karpv1.NodeClaim{claim(pool, 0)}); got != want {
			t.Errorf("a replacement in pool %s may take %s, want %s", pool, got, want)
		}
	}
}

// TestDriftWaitsForNodesInLaunch: the pod of a drifted node fits on another node, which is not initialized yet. The
// move starts only when the other node is initialized, and launches nothing.
func TestDriftWaitsForNodesInLaunch(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 1, "1500m", "1500m", "t3.medium")
	f.changePool(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.After(time.Hour) }) // only drift
	old := f.claims(t)[0]
	f.addPendingPod(t, "for-a-while", "1500m", "512Mi")
	f.plan(t)
	f.reconcileClaims(t)
	f.check(t, f.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "for-a-while"}}))
	f.check(t, f.api.Get(t.Context(), client.ObjectKeyFromObject(&old), &old))
	old.StatusConditions().Set(f.now(),
		metav1.Condition{Type: karpv1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: "NodePoolDrifted", Message: "labels"})
	f.check(t, f.api.Status().Update(t.Context(), &old))
	f.ahead += time.Minute
	f.runDisruption(t)
	if n := metricCount(t, f.Moves.Metrics.Started); n != 0 || len(f.claims(t)) != 2 {
		t.Fatalf("%d moves were started, and there are %d claims, want none and two\n%s", n, len(f.claims(t)), f.tail())
	}
	f.boot(t)
	f.reconcileClaims(t)
	f.runDisruption(t)
	if n := metricCount(t, f.Moves.Metrics.Started, "Drifted"); n != 1 || len(f.claims(t)) != 2 {
		t.Errorf("%d moves were started, and there are %d claims, want one and two\n%s", n, len(f.claims(t)), f.tail())
	}
}
