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

// TestNodesAreDoneWithout: the remaining pods fit on fewer of the existing nodes.
func TestNodesAreDoneWithout(t *testing.T) {
	t.Parallel()
	f := newPark(t, 4, "1500m", "400m", "t3.medium")
	f.live(t)
	if got := f.types(); got != "1 t3.medium" {
		t.Fatalf("remaining: %s\n%s", got, f.log)
	}
	if n := len(f.estate.Region.Instances.All()); n != 4 {
		t.Errorf("%d instances were launched in all, want 4", n)
	}
	if f.events.has("NodeClaim/DisruptionTerminating", "Underutilized", "saves $") == "" {
		t.Errorf("no event names the cause: %v", f.events.told)
	}
	m := f.Moves.Metrics
	if counted(t, m.Ended, "Underutilized", "done") == 0 || summed(t, m.Saving, "promised") <= 0 ||
		counted(t, m.Ended, "Underutilized", "undone") != 0 {
		t.Error("the metrics do not count the move")
	}
}

// TestNodesAreDoneWithoutTheirSubnet: when the tag of the nodes' subnets is removed, so that nothing can be launched there,
// the nodes keep their price, and consolidation works as before.
func TestNodesAreDoneWithoutTheirSubnet(t *testing.T) {
	t.Parallel()
	f := newPark(t, 4, "1500m", "400m", "t3.medium")
	f.Do(func(_ *world.World, now time.Time) {
		for _, i := range f.estate.Region.Instances.All() {
			if err := f.estate.Region.Tag(now, []string{i.SubnetID}, nil, []string{"karpenter.sh/discovery"}); err != nil {
				t.Error(err)
			}
		}
	})
	f.classes(t)
	f.live(t)
	if got := f.types(); got != "1 t3.medium" {
		t.Fatalf("remaining: %s, where the class finds %d subnets\n%s", got, len(f.class(t).Status.Subnets), f.log)
	}
	if saved := summed(t, f.Moves.Metrics.Saving, "realised"); saved <= 0 {
		t.Errorf("realised is $%v", saved)
	}
}

// TestNodesAreReplaced: a small node replaces two large ones, and is ready before the first pod is evicted.
func TestNodesAreReplaced(t *testing.T) {
	t.Parallel()
	f := newPark(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.live(t)
	if got := f.types(); got != "1 t3.medium" {
		t.Fatalf("remaining: %s\n%s", got, f.log)
	}
	if n := len(f.estate.Region.Instances.All()); n != 3 {
		t.Errorf("%d instances were launched in all, want 3\n%s", n, f.log)
	}
	saved := func(kind string) float64 { return summed(t, f.Moves.Metrics.Saving, kind) }
	if promised, realised := saved("promised"), saved("realised"); promised < 0.5 || realised < promised-0.001 {
		t.Errorf("promised $%v, realised $%v", promised, realised)
	}
	if f.events.has("NodeClaim/DisruptionTerminating", "saves $", "an hour, pays back within ", " and moves ") == "" {
		t.Errorf("no event reports the payback time: %v", f.events.told)
	}
}

// TestBudgetsBoundMoves: no more nodes leave at once than the budget allows.
func TestBudgetsBoundMoves(t *testing.T) {
	t.Parallel()
	f := newPark(t, 6, "1500m", "400m", "t3.medium")
	f.budgets(t, karpv1.Budget{Nodes: "1"})
	f.live(t)
	if got := f.types(); got != "2 t3.medium" || f.most != 1 {
		t.Errorf("remaining: %s, %d nodes left at once\n%s", got, f.most, f.log)
	}
}

// TestMoveIsUndone: if the replacement does not join, the old nodes accept pods again.
func TestMoveIsUndone(t *testing.T) {
	t.Parallel()
	f := newPark(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.slow = true
	before := f.types()
	f.lead(t)
	for range 10 {
		f.round(t)
	}
	if f.isWhole(t) == "" || len(f.claims(t)) != 3 {
		t.Fatalf("nothing was started\n%s\n%s", f.text(t), f.log)
	}
	f.ahead += replacement.ReadyWithin
	for range 12 {
		f.round(t)
	}
	if why := f.isWhole(t); why != "" || f.types() != before {
		t.Fatalf("%s; remaining: %s\n%s\n%s", why, f.types(), f.text(t), f.log)
	}
	if f.events.has("NodeClaim/DisruptionUndone", "undone") == "" || counted(t, f.Moves.Metrics.Ended, "Underutilized", "undone") != 1 {
		t.Errorf("no event reports it, or it was tried again at once: %v", f.events.told)
	}
	// After a while the move is tried again, and works.
	f.slow = false
	f.ahead += disruptor.HoldFirst
	f.live(t)
	if got := f.types(); got != "1 t3.medium" {
		t.Errorf("remaining: %s\n%s", got, f.log)
	}
}

// TestWhatKeepsNodes: no move starts if the pool or a pod forbids it.
func TestWhatKeepsNodes(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, f *park){
		"only empty nodes go": func(t *testing.T, f *park) {
			f.change(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmpty })
		},
		"never": func(t *testing.T, f *park) {
			f.change(t, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{} })
		},
		"no budget": func(t *testing.T, f *park) { f.budgets(t, karpv1.Budget{Nodes: "0"}) },
		"paused": func(t *testing.T, f *park) {
			f.change(t, func(p *karpv1.NodePool) { p.Annotations = map[string]string{karpv1.AnnotationPaused: "true"} })
		},
		"saves too little": func(t *testing.T, f *park) {
			f.change(t, func(p *karpv1.NodePool) { p.Annotations = map[string]string{karpv1.AnnotationMinimumSaving: "$100"} })
		},
		"pods with do-not-disrupt": func(t *testing.T, f *park) {
			for _, p := range f.pods(t) {
				p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
				f.check(t, f.api.Update(t.Context(), &p))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newPark(t, 3, "1500m", "400m", "t3.medium")
			prepare(t, f)
			before := f.text(t)
			for range 20 {
				f.round(t)
			}
			if f.text(t) != before {
				t.Errorf("something was done\n%s\n%s", f.text(t), f.log)
			}
		})
	}
}

// TestMoveWaitsForProtectedPod: a pod that becomes protected after a move has started keeps its node, and the move is undone.
func TestMoveWaitsForProtectedPod(t *testing.T) {
	t.Parallel()
	f := newPark(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.lead(t)
	for _, p := range f.pods(t) {
		p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
		f.check(t, f.api.Update(t.Context(), &p))
	}
	f.live(t)
	if got := f.types(); got != "2 m5.2xlarge" {
		t.Fatalf("remaining: %s\n%s", got, f.log)
	}
	if f.events.has("NodeClaim/DisruptionUndone", "has the annotation karpenter.sh/do-not-disrupt") == "" {
		t.Errorf("no event names the cause: %v", f.events.told)
	}
}

// TestUnreadableMark: a mark that cannot be parsed is removed.
func TestUnreadableMark(t *testing.T) {
	t.Parallel()
	f := newPark(t, 1, "1500m", "1500m", "t3.medium")
	claim, node := f.claims(t)[0], f.nodes(t)[0]
	claim.Annotations[nodestate.AnnotationMove] = "{"
	f.check(t, f.api.Update(t.Context(), &claim))
	node.Spec.Taints = append(node.Spec.Taints, karpv1.DisruptedTaint())
	f.check(t, f.api.Update(t.Context(), &node))
	f.live(t)
	if f.types() != "1 t3.medium" || !strings.Contains(f.log.String(), "cannot be read") {
		t.Errorf("remaining: %s\n%s", f.types(), f.log)
	}
}

// TestCrashWhileMoving ends the process after each of its writes in turn, from the start of a move to its end, and restarts
// it with an empty memory. In each case the move is completed, or undone and done again. At no time
// is a pod without a node, and no mark or taint is left behind.
func TestCrashWhileMoving(t *testing.T) {
	t.Parallel()
	afterEachWrite(t, 14, moved)
}

func moved(t *testing.T, crashAfter int) int {
	t.Helper()
	f := newPark(t, 2, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.fuse.set(crashAfter)
	f.live(t)
	writes := f.fuse.writes()
	if f.isDead() {
		f.restart(t)
		f.Moves.Now = f.now
		f.live(t)
		f.ahead += disruptor.HoldMost
		f.live(t)
	}
	if got := f.types(); got != "1 t3.medium" {
		t.Errorf("remaining: %s\n%s", got, f.log)
	}
	if n := len(f.estate.Region.Instances.All()); n > 4 {
		t.Errorf("%d instances were launched in all, want 3, or 4 where a move was undone\n%s", n, f.log)
	}
	return writes
}

// TestWhatDoesNotHoldIsLeftAlone: a move that each scan finds, but no revalidation confirms, does not prevent other moves.
func TestWhatDoesNotHoldIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := newPark(t, 3, "1500m", "1400m", "t3.medium") // no node has room for another pod
	s, err := f.Moves.ReadInput(t.Context(), f.now())
	f.check(t, err)
	name, other := s.In.Snapshot.Nodes[0].Name, s.In.Snapshot.Nodes[1].Name
	f.check(t, f.Moves.Choose(t.Context(), []consolidation.Move{{Nodes: []string{name}, Pods: 1}, {Nodes: []string{other}, Pods: 1}}))
	if why := f.isWhole(t); why != "" {
		t.Fatal(why)
	}
	may := func() []string {
		s, err := f.Moves.ReadInput(t.Context(), f.now())
		f.check(t, err)
		nodes, _ := disruption.Candidates(s.In, disruption.Underutilized)
		return nodes
	}
	if got := may(); len(got) != 2 || slices.Contains(got, name) {
		t.Errorf("the next scan considers %v, but it should skip %s", got, name)
	}
	f.ahead += disruptor.HoldFirst
	if got := may(); len(got) != 3 {
		t.Errorf("after the exclusion the scan considers %v, want all three", got)
	}
}
