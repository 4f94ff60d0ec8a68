package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/writer"
)

// joinLaunched makes launched instances join. It does not run the loops that choose nodes to disrupt.
func (f *replicaRig) joinLaunched(t *testing.T) {
	t.Helper()
	f.noJoin = false
	for range 3 {
		f.ahead += min(f.reconcileClaims(t), 5*time.Second)
		f.boot(t)
	}
	f.reconcileClaims(t)
}

func (f *replicaRig) deletedClaims(t *testing.T) (out []string) {
	t.Helper()
	for _, c := range f.claims(t) {
		if c.DeletionTimestamp != nil {
			out = append(out, c.Name)
		}
	}
	return out
}

type unreadableSwitch struct{} // the global pause

func (unreadableSwitch) String() string { return "ConfigMap a/joiner" }

func (unreadableSwitch) Read(context.Context) (string, error) { return "", errors.New("timeout") }

// TestMoveWaitsForInput: no move is committed while the offerings are unknown, as after a start, or while the global
// pause cannot be read. The move is not undone either, and continues afterwards.
func TestMoveWaitsForInput(t *testing.T) {
	t.Parallel()
	for name, hideInput := range map[string]func(f *replicaRig) (restore func()){
		"unknown offerings": func(f *replicaRig) func() {
			known := f.Market.Offered
			f.Market.Offered = ec2.Market{}
			return func() { f.Market.Offered = known }
		},
		"unreadable pause": func(f *replicaRig) func() {
			known := f.Moves.Pauses
			f.Moves.Pauses = &loop.Pauses{Switch: unreadableSwitch{}, Log: f.Moves.Log}
			return func() { f.Moves.Pauses = known }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newReplicaRig(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
			f.launchReplacement(t)
			f.joinLaunched(t)
			restore := hideInput(f)
			for range 5 {
				f.ahead += 20 * time.Second
				f.check(t, f.Moves.Advance(t.Context()))
			}
			if deleted := f.deletedClaims(t); len(deleted) > 0 || f.moveTraces(t) == "" {
				t.Fatalf("%v are being deleted, or the move was undone; want neither\n%s", deleted, f.tail())
			}
			restore()
			f.converge(t)
			if got := f.typeCounts(); got != "1 t3.medium" {
				t.Errorf("remaining: %s, want 1 t3.medium\n%s", got, f.tail())
			}
		})
	}
}

// TestForbiddenMoveIsUndone: while the replacement of a move starts, a user changes a setting so that the move is no
// longer allowed. The move is undone in the next round, and an event names the cause.
func TestForbiddenMoveIsUndone(t *testing.T) {
	t.Parallel()
	team := func(name string) func(p *karpv1.NodePool) {
		return func(p *karpv1.NodePool) { p.Spec.Template.Labels = map[string]string{"team": name} }
	}
	for name, c := range map[string]struct { // by what the user does
		drifts bool // the move replaces a drifted node; otherwise it saves money
		change func(t *testing.T, f *replicaRig)
		event  string // a part of the event that names the cause
	}{
		"pauses the pool": {false, func(t *testing.T, f *replicaRig) {
			f.changePool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, karpv1.AnnotationPaused, "true") })
		}, "was paused"},
		"turns consolidation off": {false, func(t *testing.T, f *replicaRig) {
			f.changePool(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{} })
		}, "no longer allows disruption to save money"},
		"allows only empty nodes to be removed": {false, func(t *testing.T, f *replicaRig) {
			f.changePool(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmpty })
		}, "no longer allows disruption to save money"},
		"writes an invalid setting": {false, func(t *testing.T, f *replicaRig) {
			f.changePool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, karpv1.AnnotationMinimumSaving, "much") })
		}, "no longer allows the move"},
		"keeps the Node": {false, func(t *testing.T, f *replicaRig) {
			for _, n := range f.nodes(t) {
				driftcheck.Annotate(&n, karpv1.AnnotationDoNotDisrupt, "true")
				f.check(t, f.api.Update(t.Context(), &n))
			}
		}, "is kept by the annotation karpenter.sh/do-not-disrupt of the Node"},
		"keeps the NodeClaim": {true, func(t *testing.T, f *replicaRig) {
			for _, c := range f.claims(t) {
				driftcheck.Annotate(&c, karpv1.AnnotationDoNotDisrupt, "true")
				f.check(t, f.api.Update(t.Context(), &c))
			}
		}, "is kept by the annotation karpenter.sh/do-not-disrupt of the NodeClaim"},
		"reverts the change": {true, func(t *testing.T, f *replicaRig) { f.editPool(t, team("a")) }, "is no longer drifted"},
		"only observes drift": {true, func(t *testing.T, f *replicaRig) {
			f.changePool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, karpv1.AnnotationDrift, "observe") })
		}, "only observes drift now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "m5.2xlarge", "t3.medium")
			r.editPool(t, team("a"))
			f := replicaRigOn(t, r, 1, "6500m", "900m")
			f.withDrift = true
			if c.drifts {
				f.changePool(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{} })
				f.editPool(t, team("b"))
			}
			before := f.typeCounts()
			f.launchReplacement(t)
			c.change(t, f)
			f.runDisruption(t)
			if why := f.moveTraces(t); why != "" {
				t.Fatalf("%s\n%s\n%s", why, f.describe(t), f.tail())
			}
			if f.events.find("NodeClaim/DisruptionUndone", c.event) == "" {
				t.Errorf("no event names the cause: %v", f.events.emitted)
			}
			f.noJoin = false
			f.converge(t)
			if got := f.typeCounts(); got != before {
				t.Errorf("remaining: %s, want %s\n%s", got, before, f.tail())
			}
		})
	}
}

// TestTaintWithoutCauseIsRemoved: a controller that was uninstalled during a move has left a tainted Node, which no
// loop drains. After StrayAfter, the Node accepts pods again, and its claim loses the condition DisruptionReason.
// Before StrayAfter, a loop may not have written the cause of the taint yet.
func TestTaintWithoutCauseIsRemoved(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 1, "1500m", "1500m", "t3.medium")
	claim, node := f.claims(t)[0], f.nodes(t)[0]
	claim.StatusConditions().Set(f.now(), nodestate.DisruptionReason(disruption.Drifted))
	f.check(t, f.api.Status().Update(t.Context(), &claim))
	nodestate.CloseNode(&node)
	f.check(t, f.api.Update(t.Context(), &node))
	f.check(t, f.Moves.Advance(t.Context()))
	f.ahead += disruptor.StrayAfter - time.Second
	f.check(t, f.Moves.Advance(t.Context()))
	if f.moveTraces(t) == "" {
		t.Fatalf("the taint was removed before StrayAfter\n%s", f.tail())
	}
	f.ahead += time.Second
	f.check(t, f.Moves.Advance(t.Context()))
	if why := f.unfinished(t); why != "" {
		t.Fatalf("%s\n%s", why, f.tail())
	}
	if !strings.Contains(f.log.String(), "that no longer exists") {
		t.Errorf("the log does not report the taint\n%s", f.tail())
	}
}

// TestLeavingNodesStayTainted: the taint of expired and of interrupted nodes is not removed.
func TestLeavingNodesStayTainted(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 1, "1500m", "1500m", "t3.medium")
	for _, key := range []string{nodestate.AnnotationReplacing, nodestate.AnnotationInterrupted} {
		claim, node := f.claims(t)[0], f.nodes(t)[0]
		claim.Annotations = map[string]string{key: f.now().UTC().Format(time.RFC3339)}
		if key == nodestate.AnnotationInterrupted {
			claim.Annotations[key] = "x " + claim.Annotations[key] // the kind of the interruption message comes first
		}
		f.check(t, f.api.Update(t.Context(), &claim))
		nodestate.CloseNode(&node)
		f.check(t, f.api.Update(t.Context(), &node))
		for range 3 {
			f.ahead += disruptor.StrayAfter
			f.check(t, f.Moves.Advance(t.Context()))
		}
		if node = f.nodes(t)[0]; nodestate.IsOpen(&node) {
			t.Errorf("%s: the taint was removed\n%s", key, f.tail())
		}
	}
}

// TestInterruptedNodeOfAnUndoneMove: when the move of an interrupted node is undone, the node stays tainted.
func TestInterruptedNodeOfAnUndoneMove(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 1, "6500m", "900m", "m5.2xlarge", "t3.medium")
	replacement := f.launchReplacement(t)
	for _, c := range f.claims(t) {
		if c.Name != replacement.Name {
			driftcheck.Annotate(&c, nodestate.AnnotationInterrupted, "SpotInterruption "+f.now().UTC().Format(time.RFC3339))
			f.check(t, f.api.Update(t.Context(), &c))
		}
	}
	f.check(t, f.api.Delete(t.Context(), &replacement))
	f.check(t, f.Moves.Advance(t.Context()))
	for _, c := range f.claims(t) {
		if c.Annotations[nodestate.AnnotationMove] != "" {
			t.Errorf("%s still has the mark of the move\n%s", c.Name, f.tail())
		}
	}
	if node := f.nodes(t)[0]; nodestate.IsOpen(&node) {
		t.Errorf("the interrupted node accepts pods again\n%s", f.tail())
	}
}

// TestWavesCountDrainingNodes: a node that takes long to drain still counts in the wave, the number of drifted nodes
// that may be replaced at once.
func TestWavesCountDrainingNodes(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 3, "1500m", "1500m", "t3.medium")
	f.withDrift = true
	f.changePool(t, func(p *karpv1.NodePool) {
		p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{}
		driftcheck.Annotate(p, karpv1.AnnotationDriftWave, "1")
	})
	f.editPool(t, func(p *karpv1.NodePool) { p.Spec.Template.Labels = map[string]string{"team": "b"} })
	old := map[string]bool{}
	for _, c := range f.claims(t) {
		old[c.Name] = true
	}
	for range 40 { // deleted claims are not reconciled, so that no node is drained
		f.runDisruption(t)
		f.plan(t)
		f.ahead += 10 * time.Second
		for _, c := range f.claims(t) {
			if c.DeletionTimestamp == nil {
				f.reconcileClaim(t, c.Name)
			}
		}
		f.boot(t)
	}
	leaving := 0
	for _, c := range f.claims(t) {
		if old[c.Name] && (c.DeletionTimestamp != nil || c.Annotations[nodestate.AnnotationMove] != "") {
			leaving++
		}
	}
	if leaving != 1 || len(f.deletedClaims(t)) != 1 {
		t.Errorf("%d nodes are replaced at once, of which %d are being deleted; want 1 and 1, the wave\n%s\n%s", leaving,
			len(f.deletedClaims(t)), f.describe(t), f.tail())
	}
}

// TestLockKeepsReservedNodes: after Reserve, a node counts as chosen until its disruption starts, even if that takes an
// hour, and for LockMemory after the start. After Forget, it does not.
func TestLockKeepsReservedNodes(t *testing.T) {
	t.Parallel()
	var lock nodestate.DisruptionLock
	now := time.Now()
	lock.Reserve("a")
	lock.Reserve("b")
	if late := now.Add(time.Hour); !lock.IsChosen("a", late) || lock.IsChosen("c", late) {
		t.Error("a reserved node is forgotten after an hour, or a node that was not reserved counts as chosen")
	}
	lock.NoteStart("a", now)
	lock.Forget("b")
	if lock.IsChosen("b", now) || !lock.IsChosen("a", now.Add(nodestate.LockMemory)) ||
		lock.IsChosen("a", now.Add(nodestate.LockMemory+1)) {
		t.Error("a started disruption is not remembered for LockMemory, or a node still counts as chosen after Forget")
	}
}

// TestExpiryDuringMoves: nodes of a move count against the budget when another node expires. The replacement of a move
// is not also the replacement of an expired node.
func TestExpiryDuringMoves(t *testing.T) {
	t.Parallel()
	markAsMoved := func(r *rig, t *testing.T, name string) {
		t.Helper()
		claim := r.claim(t, name)
		driftcheck.Annotate(claim, nodestate.AnnotationMove, `{"id":"m","reason":"Drifted"}`)
		if err := r.api.Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("budget", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "t3.medium")
		claims := r.createServing(t, "web", "db")
		r.setBudgets(t, karpv1.Budget{Nodes: "1"})
		markAsMoved(r, t, claims[0].Name)
		r.age(t, claims[1].Name, tooOld)
		for range 3 {
			r.reconcileClaim(t, claims[1].Name)
			r.ahead += 2 * nodeclaim.CountInterval
		}
		if since := nodestate.ReplacingSince(r.claim(t, claims[1].Name)); !since.IsZero() {
			t.Errorf("the expired node is replaced at the same time as the node of the move, although the budget is 1\n%s", r.log)
		}
	})
	t.Run("static pool", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "t3.medium")
		r.reconcileClassAndPool(t)
		r.makeStatic(t, 2, 10)
		r.reconcileStaticPool(t)
		r.reconcileClaims(t)
		r.join(t)
		r.reconcileClaims(t)
		claims := r.claims(t)
		for _, c := range claims {
			pod := resident("of-"+c.Name, "ReplicaSet", "")
			pod.Spec.NodeName = c.Status.NodeName
			r.create(t, pod)
		}
		markAsMoved(r, t, claims[0].Name)
		if r.reconcileStaticPool(t); len(r.claims(t)) != 2 {
			t.Fatalf("%d claims, want 2: the loop of static pools does not replace the node of a move\n%s", len(r.claims(t)), r.log)
		}
		_, err := r.Claims.Objects.(*writer.Writer).CreateStaticReplacement(t.Context(), "apps",
			map[string]string{nodestate.AnnotationReplaces: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if r.reconcileStaticPool(t); len(r.claims(t)) != 3 {
			t.Fatalf("%d claims, want the two nodes and the replacement of the move\n%s", len(r.claims(t)), r.log)
		}
		r.reconcileClaims(t)
		r.join(t)
		r.reconcileClaims(t)
		r.age(t, claims[1].Name, tooOld)
		r.makeStatic(t, 2, 10)
		for range 3 {
			r.reconcileClaim(t, claims[1].Name)
			r.reconcileStaticPool(t)
			r.ahead += time.Minute
		}
		if c := r.claim(t, claims[1].Name); c == nil || c.DeletionTimestamp != nil {
			t.Errorf("the expired node is deleted before it has a replacement\n%s", r.log)
		}
		if n := len(r.claims(t)); n != 4 {
			t.Errorf("%d claims, want the old two and their two replacements\n%s", n, r.log)
		}
	})
}
