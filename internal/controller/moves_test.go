package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

func TestNodesAreRemoved(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 4, "1500m", "400m", "t3.medium")
	f.converge(t)
	if got := f.typeCounts(); got != "1 t3.medium" {
		t.Fatalf("remaining: %s, want 1 t3.medium\n%s", got, f.log)
	}
	if n := len(f.estate.Region.Instances.All()); n != 4 {
		t.Errorf("%d instances were launched in all, want 4", n)
	}
	if f.events.find("NodeClaim/DisruptionTerminating", "Underutilized", "saves $") == "" {
		t.Errorf("no event names the cause: %v", f.events.emitted)
	}
	m := f.Moves.Metrics
	if metricCount(t, m.Ended, "Underutilized", "done") == 0 || metricSum(t, m.Saving, "promised") <= 0 ||
		metricCount(t, m.Ended, "Underutilized", "undone") != 0 {
		t.Error("the metrics do not count a completed move with a saving")
	}
}

// TestNodesInUnselectedSubnetsAreRemoved: when the class no longer selects the subnets of the nodes, no launch is
// possible in these subnets. The nodes keep their price, and consolidation works as before.
func TestNodesInUnselectedSubnetsAreRemoved(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 4, "1500m", "400m", "t3.medium")
	f.Do(func(_ *world.World, now time.Time) {
		for _, i := range f.estate.Region.Instances.All() {
			if err := f.estate.Region.Tag(now, []string{i.SubnetID}, nil, []string{"karpenter.sh/discovery"}); err != nil {
				t.Error(err)
			}
		}
	})
	f.reconcileClassAndPool(t)
	f.converge(t)
	if got := f.typeCounts(); got != "1 t3.medium" {
		t.Fatalf("remaining: %s, want 1 t3.medium; the class selects %d subnets\n%s", got, len(f.class(t).Status.Subnets), f.log)
	}
	if saved := metricSum(t, f.Moves.Metrics.Saving, "realised"); saved <= 0 {
		t.Errorf("the realised saving is $%v, want more than 0", saved)
	}
}

// TestNodesAreReplaced: a small node replaces two large ones, and is ready before the first pod is evicted.
func TestNodesAreReplaced(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.converge(t)
	if got := f.typeCounts(); got != "1 t3.medium" {
		t.Fatalf("remaining: %s, want 1 t3.medium\n%s", got, f.log)
	}
	if n := len(f.estate.Region.Instances.All()); n != 3 {
		t.Errorf("%d instances were launched in all, want 3\n%s", n, f.log)
	}
	saved := func(kind string) float64 { return metricSum(t, f.Moves.Metrics.Saving, kind) }
	if promised, realised := saved("promised"), saved("realised"); promised < 0.5 || realised < promised-0.001 {
		t.Errorf("savings: promised $%v, realised $%v; want at least 0.5, and realised at least as much", promised, realised)
	}
	if f.events.find("NodeClaim/DisruptionTerminating", "saves $", "an hour, pays back within ", " and moves ") == "" {
		t.Errorf("no event reports the payback time: %v", f.events.emitted)
	}
}

// TestBudgetsBoundMoves: a budget of one node lets one node leave at a time. The pods need two nodes.
func TestBudgetsBoundMoves(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 6, "1500m", "400m", "t3.medium")
	f.setBudgets(t, karpv1.Budget{Nodes: "1"})
	f.converge(t)
	if got := f.typeCounts(); got != "2 t3.medium" || f.mostTainted != 1 {
		t.Errorf("remaining: %s, want 2 t3.medium; %d nodes were tainted at once, want 1\n%s", got, f.mostTainted, f.log)
	}
}

func TestMoveIsUndone(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.noJoin = true
	before := f.typeCounts()
	f.runDisruption(t)
	for range 10 {
		f.round(t)
	}
	if f.unfinished(t) == "" || len(f.claims(t)) != 3 {
		t.Fatalf("no move was started, or no replacement was launched\n%s\n%s", f.describe(t), f.log)
	}
	f.ahead += replacement.ReadyWithin
	for range 12 {
		f.round(t)
	}
	if why := f.unfinished(t); why != "" || f.typeCounts() != before {
		t.Fatalf("%s; remaining: %s, want the old nodes\n%s\n%s", why, f.typeCounts(), f.describe(t), f.log)
	}
	if f.events.find("NodeClaim/DisruptionUndone", "undone") == "" || metricCount(t, f.Moves.Metrics.Ended, "Underutilized", "undone") != 1 {
		t.Errorf("no event reports that the move was undone, or it was not undone exactly once: %v", f.events.emitted)
	}
	// After FirstHold the move is tried again, and completes.
	f.noJoin = false
	f.ahead += disruptor.FirstHold
	f.converge(t)
	if got := f.typeCounts(); got != "1 t3.medium" {
		t.Errorf("remaining: %s, want 1 t3.medium\n%s", got, f.log)
	}
}

func TestForbiddenMoves(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, f *replicaRig){
		"only empty nodes": func(t *testing.T, f *replicaRig) {
			f.changePool(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmpty })
		},
		"consolidateAfter: Never": func(t *testing.T, f *replicaRig) {
			f.changePool(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{} })
		},
		"no budget": func(t *testing.T, f *replicaRig) { f.setBudgets(t, karpv1.Budget{Nodes: "0"}) },
		"paused": func(t *testing.T, f *replicaRig) {
			f.changePool(t, func(p *karpv1.NodePool) { p.Annotations = map[string]string{karpv1.AnnotationPaused: "true"} })
		},
		"the saving is too small": func(t *testing.T, f *replicaRig) {
			f.changePool(t, func(p *karpv1.NodePool) { p.Annotations = map[string]string{karpv1.AnnotationMinimumSaving: "$100"} })
		},
		"pods with do-not-disrupt": func(t *testing.T, f *replicaRig) {
			for _, p := range f.pods(t) {
				p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
				f.check(t, f.api.Update(t.Context(), &p))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newReplicaRig(t, 3, "1500m", "400m", "t3.medium")
			prepare(t, f)
			before := f.describe(t)
			for range 20 {
				f.round(t)
			}
			if f.describe(t) != before {
				t.Errorf("a node, claim or pod has changed\n%s\n%s", f.describe(t), f.log)
			}
		})
	}
}

// TestMoveWaitsForProtectedPod: a pod that becomes protected after a move has started keeps its node, and the move is
// undone.
func TestMoveWaitsForProtectedPod(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.runDisruption(t)
	for _, p := range f.pods(t) {
		p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
		f.check(t, f.api.Update(t.Context(), &p))
	}
	f.converge(t)
	if got := f.typeCounts(); got != "2 m5.2xlarge" {
		t.Fatalf("remaining: %s, want 2 m5.2xlarge\n%s", got, f.log)
	}
	if f.events.find("NodeClaim/DisruptionUndone", "has the annotation karpenter.sh/do-not-disrupt") == "" {
		t.Errorf("no event names the cause: %v", f.events.emitted)
	}
}

// TestUnreadableMark: the mark of a move on a claim is removed if it cannot be parsed, and the node accepts pods again.
func TestUnreadableMark(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 1, "1500m", "1500m", "t3.medium")
	claim, node := f.claims(t)[0], f.nodes(t)[0]
	claim.Annotations[nodestate.AnnotationMove] = "{"
	f.check(t, f.api.Update(t.Context(), &claim))
	node.Spec.Taints = append(node.Spec.Taints, karpv1.DisruptedTaint())
	f.check(t, f.api.Update(t.Context(), &node))
	f.converge(t)
	if f.typeCounts() != "1 t3.medium" || !strings.Contains(f.log.String(), "cannot be read") {
		t.Errorf("remaining: %s, want 1 t3.medium, and a log line about the mark\n%s", f.typeCounts(), f.log)
	}
}

// TestCrashWhileMoving ends the process after each of its writes in turn, from the start of a move to its end, and
// restarts it with an empty memory. In each case the move is completed, or undone and tried again. At no time is a pod
// without a node, and no mark or taint is left behind.
func TestCrashWhileMoving(t *testing.T) {
	t.Parallel()
	crashAfterEachWrite(t, 14, moveWithCrash)
}

// moveWithCrash replaces two nodes; the process ends after crashAfter writes. It returns the number of writes.
func moveWithCrash(t *testing.T, crashAfter int) int {
	t.Helper()
	f := newReplicaRig(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.fuse.set(crashAfter)
	f.converge(t)
	writes := f.fuse.writes()
	if f.isDead() {
		f.restart(t)
		f.Moves.Now = f.now
		f.converge(t)
		f.ahead += disruptor.MaxHold
		f.converge(t)
	}
	if got := f.typeCounts(); got != "1 t3.medium" {
		t.Errorf("remaining: %s, want 1 t3.medium\n%s", got, f.log)
	}
	if n := len(f.estate.Region.Instances.All()); n > 4 {
		t.Errorf("%d instances were launched in all, want 3, or 4 if the move was undone\n%s", n, f.log)
	}
	return writes
}

// TestUnconfirmedMoveIsExcluded: if a scan finds a move, and revalidation does not confirm it, the next scans skip its
// node for FirstHold. So it does not prevent other moves.
func TestUnconfirmedMoveIsExcluded(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 3, "1500m", "1400m", "t3.medium") // no node has room for another pod
	s, err := f.Moves.ReadInput(t.Context(), f.now())
	f.check(t, err)
	name, other := s.In.Snapshot.Nodes[0].Name, s.In.Snapshot.Nodes[1].Name
	f.check(t, f.Moves.StartConfirmed(t.Context(), []consolidation.Move{{Nodes: []string{name}, Pods: 1}, {Nodes: []string{other}, Pods: 1}}))
	if why := f.unfinished(t); why != "" {
		t.Fatal(why)
	}
	candidates := func() []string {
		s, err := f.Moves.ReadInput(t.Context(), f.now())
		f.check(t, err)
		nodes, _ := disruption.Candidates(s.In, disruption.Underutilized)
		return nodes
	}
	if got := candidates(); len(got) != 2 || slices.Contains(got, name) {
		t.Errorf("the next scan considers %v, want two nodes, without %s", got, name)
	}
	f.ahead += disruptor.FirstHold
	if got := candidates(); len(got) != 3 {
		t.Errorf("after the exclusion the scan considers %v, want all three", got)
	}
}
