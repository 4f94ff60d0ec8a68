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

// come makes launched instances join. It does not run the loops that decide about disruption.
func (f *park) come(t *testing.T) {
	t.Helper()
	f.slow = false
	for range 3 {
		f.ahead += min(f.work(t), 5*time.Second)
		f.boot(t)
	}
	f.work(t)
}

// leavers returns the claims that are being deleted.
func (f *park) leavers(t *testing.T) (out []string) {
	t.Helper()
	for _, c := range f.claims(t) {
		if c.DeletionTimestamp != nil {
			out = append(out, c.Name)
		}
	}
	return out
}

// lostSwitch is a pause switch that cannot be read.
type lostSwitch struct{}

func (lostSwitch) String() string { return "ConfigMap a/joiner" }

func (lostSwitch) Read(context.Context) (string, error) { return "", errors.New("timeout") }

// TestNothingGoesUnseen: no move is committed while instance types are unknown, as after a start, or while the global pause cannot be read,
// because nothing ensures that its pods can be placed. No move is undone because of it.
func TestNothingGoesUnseen(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]func(f *park) (show func()){
		"unknown offerings": func(f *park) func() {
			known := f.Market.Offered
			f.Market.Offered = ec2.Market{}
			return func() { f.Market.Offered = known }
		},
		"unreadable pause": func(f *park) func() {
			known := f.Moves.Pauses
			f.Moves.Pauses = &loop.Pauses{Switch: lostSwitch{}, Log: f.Moves.Log}
			return func() { f.Moves.Pauses = known }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newPark(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
			f.comer(t)
			f.come(t)
			show := hide(f)
			for range 5 {
				f.ahead += 20 * time.Second
				f.check(t, f.Moves.Advance(t.Context()))
			}
			if left := f.leavers(t); len(left) > 0 || f.isReopened(t) == "" {
				t.Fatalf("%v are deleted, or the move was undone\n%s", left, f.tail())
			}
			show()
			f.live(t)
			if got := f.types(); got != "1 t3.medium" {
				t.Errorf("remaining: %s\n%s", got, f.tail())
			}
		})
	}
}

// TestUsersChangeTheirMind: when a user changes a setting that forbids the move while its replacement starts, the move is undone
// in the next round, with the reason.
func TestUsersChangeTheirMind(t *testing.T) {
	t.Parallel()
	team := func(name string) func(p *karpv1.NodePool) {
		return func(p *karpv1.NodePool) { p.Spec.Template.Labels = map[string]string{"team": name} }
	}
	for name, c := range map[string]struct {
		drifts bool
		change func(t *testing.T, f *park)
		says   string
	}{
		"pauses the pool": {false, func(t *testing.T, f *park) {
			f.change(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, karpv1.AnnotationPaused, "true") })
		}, "was paused"},
		"turns consolidation off": {false, func(t *testing.T, f *park) {
			f.change(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{} })
		}, "no longer allows disruption to save money"},
		"wants only empty nodes to go": {false, func(t *testing.T, f *park) {
			f.change(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmpty })
		}, "no longer allows disruption to save money"},
		"writes an invalid setting": {false, func(t *testing.T, f *park) {
			f.change(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, karpv1.AnnotationMinimumSaving, "much") })
		}, "no longer allows the move"},
		"keeps the Node": {false, func(t *testing.T, f *park) {
			for _, n := range f.nodes(t) {
				driftcheck.Annotate(&n, karpv1.AnnotationDoNotDisrupt, "true")
				f.check(t, f.api.Update(t.Context(), &n))
			}
		}, "is kept by the annotation karpenter.sh/do-not-disrupt of the Node"},
		"keeps the NodeClaim": {true, func(t *testing.T, f *park) {
			for _, c := range f.claims(t) {
				driftcheck.Annotate(&c, karpv1.AnnotationDoNotDisrupt, "true")
				f.check(t, f.api.Update(t.Context(), &c))
			}
		}, "is kept by the annotation karpenter.sh/do-not-disrupt of the NodeClaim"},
		"reverts the change": {true, func(t *testing.T, f *park) { f.editPool(t, team("a")) }, "is no longer drifted"},
		"only observes drift": {true, func(t *testing.T, f *park) {
			f.change(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, karpv1.AnnotationDrift, "observe") })
		}, "only observes drift now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "m5.2xlarge", "t3.medium")
			r.editPool(t, team("a"))
			f := parkOn(t, r, 1, "6500m", "900m")
			f.fresh = true
			if c.drifts {
				f.change(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{} })
				f.editPool(t, team("b"))
			}
			before := f.types()
			f.comer(t)
			c.change(t, f)
			f.lead(t)
			if why := f.isReopened(t); why != "" {
				t.Fatalf("%s\n%s\n%s", why, f.text(t), f.tail())
			}
			if f.events.has("NodeClaim/DisruptionUndone", c.says) == "" {
				t.Errorf("no event names the cause: %v", f.events.told)
			}
			f.slow = false
			f.live(t)
			if got := f.types(); got != before {
				t.Errorf("remaining: %s, want %s\n%s", got, before, f.tail())
			}
		})
	}
}

// TestNobodyStaysClosed: a tainted Node that nothing drains, as left behind by a controller that was uninstalled during a move, accepts
// pods again, and its claim loses the DisruptionReason. This is delayed, because the cause of the taint may be about to be written.
func TestNobodyStaysClosed(t *testing.T) {
	t.Parallel()
	f := newPark(t, 1, "1500m", "1500m", "t3.medium")
	claim, node := f.claims(t)[0], f.nodes(t)[0]
	claim.StatusConditions().Set(f.now(), nodestate.DisruptionReason(disruption.Drifted))
	f.check(t, f.api.Status().Update(t.Context(), &claim))
	nodestate.CloseNode(&node)
	f.check(t, f.api.Update(t.Context(), &node))
	f.check(t, f.Moves.Advance(t.Context()))
	f.ahead += disruptor.StrayAfter - time.Second
	f.check(t, f.Moves.Advance(t.Context()))
	if f.isReopened(t) == "" {
		t.Fatalf("it was opened before the cause of its taint could be known\n%s", f.tail())
	}
	f.ahead += time.Second
	f.check(t, f.Moves.Advance(t.Context()))
	if why := f.isWhole(t); why != "" {
		t.Fatalf("%s\n%s", why, f.tail())
	}
	if !strings.Contains(f.log.String(), "that no longer exists") {
		t.Errorf("it was not reported\n%s", f.tail())
	}
}

// TestWhoGoesIsNotOpened: nodes that are expired, interrupted or moved stay tainted.
func TestWhoGoesIsNotOpened(t *testing.T) {
	t.Parallel()
	f := newPark(t, 1, "1500m", "1500m", "t3.medium")
	for _, key := range []string{nodestate.AnnotationReplacing, nodestate.AnnotationInterrupted} {
		claim, node := f.claims(t)[0], f.nodes(t)[0]
		claim.Annotations = map[string]string{key: f.now().UTC().Format(time.RFC3339)}
		if key == nodestate.AnnotationInterrupted {
			claim.Annotations[key] = "x " + claim.Annotations[key]
		}
		f.check(t, f.api.Update(t.Context(), &claim))
		nodestate.CloseNode(&node)
		f.check(t, f.api.Update(t.Context(), &node))
		for range 3 {
			f.ahead += disruptor.StrayAfter
			f.check(t, f.Moves.Advance(t.Context()))
		}
		if node = f.nodes(t)[0]; nodestate.IsOpen(&node) {
			t.Errorf("%s: the node was opened\n%s", key, f.tail())
		}
	}
}

// TestUndoneMoveLeavesTheInterruptedClosed: an interrupted node does not accept pods again because a move of it is undone.
func TestUndoneMoveLeavesTheInterruptedClosed(t *testing.T) {
	t.Parallel()
	f := newPark(t, 1, "6500m", "900m", "m5.2xlarge", "t3.medium")
	come := f.comer(t)
	for _, c := range f.claims(t) {
		if c.Name != come.Name {
			driftcheck.Annotate(&c, nodestate.AnnotationInterrupted, "SpotInterruption "+f.now().UTC().Format(time.RFC3339))
			f.check(t, f.api.Update(t.Context(), &c))
		}
	}
	f.check(t, f.api.Delete(t.Context(), &come))
	f.check(t, f.Moves.Advance(t.Context()))
	for _, c := range f.claims(t) {
		if c.Annotations[nodestate.AnnotationMove] != "" {
			t.Errorf("%s still bears the mark\n%s", c.Name, f.tail())
		}
	}
	if node := f.nodes(t)[0]; nodestate.IsOpen(&node) {
		t.Errorf("it accepts pods again\n%s", f.tail())
	}
}

// TestWavesCountWhoIsEmptied: a node that takes long to drain still counts as one that is being replaced.
func TestWavesCountWhoIsEmptied(t *testing.T) {
	t.Parallel()
	f := newPark(t, 3, "1500m", "1500m", "t3.medium")
	f.fresh = true
	f.change(t, func(p *karpv1.NodePool) {
		p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{}
		driftcheck.Annotate(p, karpv1.AnnotationDriftWave, "1")
	})
	f.editPool(t, func(p *karpv1.NodePool) { p.Spec.Template.Labels = map[string]string{"team": "b"} })
	old := map[string]bool{}
	for _, c := range f.claims(t) {
		old[c.Name] = true
	}
	for range 40 { // pods stay where they are: no node is drained
		f.lead(t)
		f.plan(t)
		f.ahead += 10 * time.Second
		for _, c := range f.claims(t) {
			if c.DeletionTimestamp == nil {
				f.visit(t, c.Name)
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
	if leaving != 1 || len(f.leavers(t)) != 1 {
		t.Errorf("%d nodes are replaced at once, of which %d are emptied; the wave is 1\n%s\n%s", leaving, len(f.leavers(t)), f.text(t), f.tail())
	}
}

// TestGateKeepsWhatWasGranted: chosen nodes are recorded until they start to leave, however long that takes, and for a moment after that.
func TestGateKeepsWhatWasGranted(t *testing.T) {
	t.Parallel()
	var g nodestate.DisruptionLock
	now := time.Now()
	g.Reserve("a")
	g.Reserve("b")
	if late := now.Add(time.Hour); !g.Going("a", late) || g.Going("c", late) {
		t.Error("a chosen node is forgotten, or a node that was not chosen is recorded")
	}
	g.Note("a", now)
	g.Forget("b")
	if g.Going("b", now) || !g.Going("a", now.Add(nodestate.LockMemory)) || g.Going("a", now.Add(nodestate.LockMemory+1)) {
		t.Error("a started disruption is not remembered for LockMemory, or a released node is still recorded")
	}
}

// TestExpiryKnowsOfMoves: nodes of a move count against the budget for expired nodes, and their replacements are not used for a node
// that expires.
func TestExpiryKnowsOfMoves(t *testing.T) {
	t.Parallel()
	mark := func(r *rig, t *testing.T, name string) {
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
		claims := r.servingNodes(t, "web", "db")
		r.budgets(t, karpv1.Budget{Nodes: "1"})
		mark(r, t, claims[0].Name)
		r.age(t, claims[1].Name, tooOld)
		for range 3 {
			r.visit(t, claims[1].Name)
			r.ahead += 2 * nodeclaim.TurnsEvery
		}
		if since := nodestate.ReplacingSince(r.claim(t, claims[1].Name)); !since.IsZero() {
			t.Errorf("two nodes go at once, the budget is 1\n%s", r.log)
		}
	})
	t.Run("static pool", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "t3.medium")
		r.classes(t)
		r.static(t, 2, 10)
		r.keep(t)
		r.work(t)
		r.join(t)
		r.work(t)
		claims := r.claims(t)
		for _, c := range claims {
			pod := resident("of-"+c.Name, "ReplicaSet", "")
			pod.Spec.NodeName = c.Status.NodeName
			r.create(t, pod)
		}
		mark(r, t, claims[0].Name)
		if r.keep(t); len(r.claims(t)) != 2 {
			t.Fatalf("%d claims: one is launched in the place of a node that stays, as its move is about to be undone\n%s", len(r.claims(t)), r.log)
		}
		_, err := r.Claims.Objects.(*writer.Writer).CreateStaticReplacement(t.Context(), "apps",
			map[string]string{nodestate.AnnotationReplaces: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if r.keep(t); len(r.claims(t)) != 3 {
			t.Fatalf("%d claims, want 3\n%s", len(r.claims(t)), r.log)
		}
		r.work(t)
		r.join(t)
		r.work(t)
		r.age(t, claims[1].Name, tooOld)
		r.static(t, 2, 10)
		for range 3 {
			r.visit(t, claims[1].Name)
			r.keep(t)
			r.ahead += time.Minute
		}
		if c := r.claim(t, claims[1].Name); c == nil || c.DeletionTimestamp != nil {
			t.Errorf("it goes before there is another in its place\n%s", r.log)
		}
		if n := len(r.claims(t)); n != 4 {
			t.Errorf("%d claims, want 2 that go and 2 in their place\n%s", n, r.log)
		}
	})
}
