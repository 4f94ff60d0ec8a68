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

// comer runs the loops until a replacement is launched, and returns the claim of the replacement.
func (f *park) comer(t *testing.T) karpv1.NodeClaim {
	t.Helper()
	f.slow = true
	for range 5 {
		f.round(t)
		for _, c := range f.claims(t) {
			if c.Annotations[nodestate.AnnotationReplaces] != "" && c.Status.ProviderID != "" {
				return c
			}
		}
	}
	t.Fatalf("no replacement was launched\n%s\n%s", f.text(t), f.tail())
	return karpv1.NodeClaim{}
}

// isReopened returns the marks and taints that a move has left on the old nodes; empty if there are none.
func (f *park) isReopened(t *testing.T) string {
	t.Helper()
	for _, c := range f.claims(t) {
		if _, why := c.StatusConditions().Find(karpv1.ConditionDisruptionReason); c.Annotations[nodestate.AnnotationMove] != "" || why {
			return c.Name + " bears the marks of a move"
		}
	}
	for _, n := range f.nodes(t) {
		if !nodestate.IsOpen(&n) {
			return n.Name + " takes no pods"
		}
	}
	return ""
}

// TestLostReplacementUndoesAtOnce: whatever ends the replacement, the old nodes accept pods again in the next round.
func TestLostReplacementUndoesAtOnce(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, f *park, c karpv1.NodeClaim){
		"its claim is deleted": func(t *testing.T, f *park, c karpv1.NodeClaim) { f.check(t, f.api.Delete(t.Context(), &c)) },
		"its claim is gone": func(t *testing.T, f *park, c karpv1.NodeClaim) {
			c.Finalizers = nil
			f.check(t, f.api.Update(t.Context(), &c))
			f.check(t, f.api.Delete(t.Context(), &c))
		},
		"its instance is gone": func(t *testing.T, f *park, c karpv1.NodeClaim) {
			f.Do(func(_ *world.World, now time.Time) {
				for _, i := range f.estate.Region.Instances.All() {
					if i.Type == "t3.medium" {
						_, _, err := f.estate.Region.Instances.Terminate(now, []string{i.ID})
						f.check(t, err)
					}
				}
			})
			for range 20 { // until EC2 would return a new instance
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
			f := newPark(t, 1, "6500m", "900m", "m5.2xlarge", "t3.medium")
			c := f.comer(t)
			if f.isReopened(t) == "" {
				t.Fatalf("the node was not closed\n%s", f.text(t))
			}
			lose(t, f, c)
			f.lead(t)
			if why := f.isReopened(t); why != "" {
				t.Fatalf("%s\n%s\n%s", why, f.text(t), f.tail())
			}
			if f.events.has("NodeClaim/DisruptionUndone", "the move was undone") == "" {
				t.Errorf("it was not reported: %v", f.events.told)
			}
		})
	}
}

// TestDoomedReplacementUndoesAtOnce: as soon as the cause is known that keeps the replacement from joining, the old
// node accepts pods again, and its pool launches no more. The replacement is kept for the time that any claim has to
// join: if the cause is fixed it joins, and the old node goes.
func TestDoomedReplacementUndoesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLateRig(t, "off", "m5.2xlarge", "t3.medium")
		l.mapRole(t)
		f := parkOn(t, l.rig, 1, "6500m", "900m")
		l.Diagnoses.Now = l.now
		l.Do(func(*world.World, time.Time) {
			f.check(t, l.estate.Region.EKS.DeleteAccessEntry(testCluster, "arn:aws:iam::"+emulator.DefaultAccount+":role/node"))
		})
		c := f.comer(t)
		f.ahead += l.Diagnoses.After
		f.check(t, f.Moves.Advance(t.Context()))
		if f.isReopened(t) == "" {
			t.Fatalf("the move was undone before the cause was known\n%s", f.tail())
		}
		l.look(t)
		f.check(t, f.Moves.Advance(t.Context()))
		if why := f.isReopened(t); why != "" {
			t.Fatalf("%s\n%s\n%s", why, f.text(t), f.tail())
		}
		if f.events.has("NodeClaim/DisruptionUndone", "replacement NodeClaim "+c.Name+" does not join the cluster: "+unmapped) == "" {
			t.Errorf("no event names the cause: %v", f.events.told)
		}
		f.ahead += 2 * disruptor.HoldFirst
		for range 3 {
			f.round(t)
		}
		if f.isReopened(t) != "" || len(f.claims(t)) != 2 || len(f.instances()) != 2 {
			t.Fatalf("the move was repeated, or its replacement did not stay\n%s\n%s", f.text(t), f.tail())
		}
		l.mapRole(t)
		f.slow = false
		f.ahead += diagnoser.AgainSick
		l.look(t)
		f.live(t)
		if got := f.types(); got != "1 t3.medium" {
			t.Errorf("remaining: %s\n%s\n%s", got, f.text(t), f.tail())
		}
	})
}

// TestDoomedReplacementIsGivenUp: an instance that does not join is given up after its own timeout, also when its move has ended.
func TestDoomedReplacementIsGivenUp(t *testing.T) {
	t.Parallel()
	f := newPark(t, 1, "6500m", "900m", "m5.2xlarge", "t3.medium")
	c := f.comer(t)
	f.Moves.Diagnoses = &diagnoser.Diagnoser{Verdicts: map[types.UID]diagnoser.Verdict{c.UID: {Check: "AUTH-5",
		Message: "its role is not mapped", Known: true}}}
	f.check(t, f.Moves.Advance(t.Context()))
	if why := f.isReopened(t); why != "" || len(f.instances()) != 2 {
		t.Fatalf("%s; %d instances\n%s", why, len(f.instances()), f.tail())
	}
	f.ahead += lifecycle.RegistrationTimeout
	f.finishDeleted(t)
	for range 5 {
		f.work(t)
		f.ahead += time.Minute
	}
	if len(f.instances()) != 1 || len(f.claims(t)) != 1 {
		t.Errorf("remaining: %d instances, %d claims\n%s", len(f.instances()), len(f.claims(t)), f.tail())
	}
}

// TestUnfitReplacementUndoes: a node that joined, but is not initialized within ten minutes, is terminated. Its template is
// recorded as failed, so that no further nodes are replaced with it.
func TestUnfitReplacementUndoes(t *testing.T) {
	t.Parallel()
	f := newPark(t, 1, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.Moves.Drift = f.Drift
	c := f.comer(t)
	node := f.nodeOf(t, c)
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	f.create(t, node)
	f.work(t)
	f.ahead += replacement.FitWithin - time.Minute
	f.check(t, f.Moves.Advance(t.Context()))
	if f.isReopened(t) == "" {
		t.Fatalf("it was not given its time\n%s", f.tail())
	}
	f.ahead += time.Minute
	f.check(t, f.Moves.Advance(t.Context()))
	if why := f.isReopened(t); why != "" {
		t.Fatalf("%s\n%s\n%s", why, f.text(t), f.tail())
	}
	if f.events.has("NodeClaim/DisruptionUndone",
		c.Name+" has joined but was not ready for pods within 10m0s: the Node is not ready") == "" {
		t.Errorf("no event names the cause: %v", f.events.told)
	}
	if failed := driftcheck.FailuresOf(f.pool(t)); len(failed) != 1 {
		t.Errorf("the pool remembers %v, want that it failed", failed)
	}
	if left := f.claim(t, c.Name); left != nil && left.DeletionTimestamp == nil {
		t.Error("the node is not terminated")
	}
}

// TestSlowPoolsAreGivenLonger: in pools whose nodes take long to initialize, replacements may take twice as long.
func TestSlowPoolsAreGivenLonger(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	claim := func(pool string, took time.Duration) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{}
		c.Labels = map[string]string{karpv1.LabelNodePool: pool}
		c.StatusConditions().SetTrue(begun, karpv1.ConditionRegistered)
		if took > 0 {
			c.StatusConditions().SetTrue(begun.Add(took), karpv1.ConditionInitialized)
		}
		return c
	}
	claims := []*karpv1.NodeClaim{claim("gpu", 6*time.Minute), claim("gpu", 8*time.Minute), claim("gpu", 9*time.Minute),
		claim("web", time.Minute)}
	for pool, want := range map[string]time.Duration{"gpu": 16 * time.Minute, "web": replacement.FitWithin, "new": replacement.FitWithin} {
		if got := loop.FitWithin(claims, []*karpv1.NodeClaim{claim(pool, 0)}); got != want {
			t.Errorf("a node of pool %s is given %s, want %s", pool, got, want)
		}
	}
}

// TestDriftWaitsForNodesOnTheirWay: a drifted node whose pod would go to a node that is not initialized yet is not
// tainted before it is. Then it goes without a further launch.
func TestDriftWaitsForNodesOnTheirWay(t *testing.T) {
	t.Parallel()
	f := newPark(t, 1, "1500m", "1500m", "t3.medium")
	f.change(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.After(time.Hour) })
	old := f.claims(t)[0]
	f.pending(t, "for-a-while", "1500m", "512Mi")
	f.plan(t)
	f.work(t)
	f.check(t, f.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "for-a-while"}}))
	f.check(t, f.api.Get(t.Context(), client.ObjectKeyFromObject(&old), &old))
	old.StatusConditions().Set(f.now(),
		metav1.Condition{Type: karpv1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: "NodePoolDrifted", Message: "labels"})
	f.check(t, f.api.Status().Update(t.Context(), &old))
	f.ahead += time.Minute
	f.lead(t)
	if n := counted(t, f.Moves.Metrics.Begun); n != 0 || len(f.claims(t)) != 2 {
		t.Fatalf("%d moves were started, and there are %d claims\n%s", n, len(f.claims(t)), f.tail())
	}
	f.boot(t)
	f.work(t)
	f.lead(t)
	if n := counted(t, f.Moves.Metrics.Begun, "Drifted"); n != 1 || len(f.claims(t)) != 2 {
		t.Errorf("%d moves were started, and there are %d claims, want one and two\n%s", n, len(f.claims(t)), f.tail())
	}
}
