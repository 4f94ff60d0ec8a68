package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/interruptions"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// sequenceRig has two nodes of a move whose pods are evicted one after the other: "api" and "second" on one, "web",
// "first" and "third" on the other.
type sequenceRig struct {
	*rig
	*bouncer
	names []string
}

func newSequenceRig(t *testing.T) sequenceRig {
	t.Helper()
	r := newRig(t, "t3.medium")
	claims := r.servingNodes(t, "api", "web")
	out := sequenceRig{r, &bouncer{Evictor: r.Claims.Evictor, guards: map[string]bool{}}, nil}
	r.Claims.Evictor = out.bouncer
	of := map[string]string{} // the node of each pod
	var pods corev1.PodList
	if err := r.api.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		of[p.Name] = p.Spec.NodeName
	}
	for name, with := range map[string]string{"first": "web", "second": "api", "third": "web"} {
		out.place(t, name, of[with])
	}
	mark := nodestate.MoveMark{
		ID: "m", Reason: disruption.Underutilized, Begun: r.now(), Nodes: 2, Pods: 5, Committed: true,
		Turns: []string{"ns/first", "ns/second", "ns/web", "ns/third", "ns/api"},
	}
	for i := range claims {
		c := r.claim(t, claims[i].Name)
		mark.Put(c, r.now())
		if err := r.api.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := r.api.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		out.names = append(out.names, c.Name)
	}
	return out
}

// place adds a pod of the only ReplicaSet to a node.
func (r sequenceRig) place(t *testing.T, name, node string) {
	t.Helper()
	pod := resident(name, "ReplicaSet", "")
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
	r.create(t, pod)
}

// seconds lets the given number of seconds pass, and reconciles both claims four times in each.
func (r sequenceRig) seconds(t *testing.T, n int) {
	t.Helper()
	for range n * int(time.Second/nodeclaim.TurnPoll) {
		for _, name := range r.names {
			r.visit(t, name)
		}
		r.ahead += nodeclaim.TurnPoll
	}
}

// TestPodsLeaveInTurn: pods of both nodes are evicted in order, each after the replacement of the previous pod is
// scheduled.
func TestPodsLeaveInTurn(t *testing.T) {
	t.Parallel()
	r := newSequenceRig(t)
	for _, step := range []struct{ successor, want string }{
		{"", "first"},
		{"a", "first second"},
		{"b", "first second web third"}, // "web" has no owner that would recreate it
		{"c", "first second web third api"},
	} {
		if step.successor != "" {
			r.place(t, step.successor, "elsewhere")
		}
		r.seconds(t, 3)
		if got := r.order(); got != step.want {
			t.Fatalf("with successor %q these have left: %q, want %q\n%s", step.successor, got, step.want, r.log)
		}
	}
	r.seconds(t, 30)
	if len(r.claims(t)) > 0 {
		t.Errorf("%d claims are left\n%s", len(r.claims(t)), r.log)
	}
}

// TestInAHurryThereAreNoTurns: pods are evicted at once from an interrupted node, and from a node that a user deletes
// before its move is committed.
func TestInAHurryThereAreNoTurns(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*karpv1.NodeClaim, *nodestate.MoveMark){
		"interrupted": func(c *karpv1.NodeClaim, _ *nodestate.MoveMark) {
			interruptions.Mark(c, interruption.SpotInterrupted, time.Now())
		},
		"not committed": func(_ *karpv1.NodeClaim, m *nodestate.MoveMark) { m.Committed = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSequenceRig(t)
			for _, name := range r.names {
				c := r.claim(t, name)
				m, err := nodestate.MoveOf(c)
				if err != nil {
					t.Fatal(err)
				}
				change(c, m)
				m.Put(c, r.now())
				if err := r.api.Update(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			r.start(t)
			r.Claims.Evictor = r.bouncer
			r.seconds(t, 2)
			if got := r.order(); len(strings.Fields(got)) != 5 {
				t.Errorf("these have left: %q, want all five\n%s", got, r.log)
			}
		})
	}
}

// TestTurnsHoldNobodyUp: a missing replacement pod, and a pod that may not be evicted, delay the others by ten seconds, also if
// the process was restarted in between.
func TestTurnsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	for name, guard := range map[string]string{"no successor": "", "a PodDisruptionBudget": "first"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSequenceRig(t)
			r.guards[guard] = true
			r.seconds(t, 3)
			if got, want := r.order(), map[string]string{"": "first"}[guard]; got != want {
				t.Fatalf("these have left: %q, want %q\n%s", got, want, r.log)
			}
			evictor := r.Claims.Evictor
			r.start(t)
			r.Claims.Evictor = evictor
			r.seconds(t, 15)
			if got := len(r.order()); got < len("second web third api") {
				t.Errorf("these have left: %q\n%s", r.order(), r.log)
			}
		})
	}
}

// TestNothingElseWhilePodsLeaveInTurn: no other move starts while pods are evicted in order, because tainted nodes
// reduce the room.
func TestNothingElseWhilePodsLeaveInTurn(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first"}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "agent"}}
	for name, c := range map[string]struct {
		turns   []string
		begun   time.Duration
		deleted bool
		pods    []*corev1.Pod
		want    bool
	}{
		"its replacements are launching": {turns: []string{"ns/first"}, pods: []*corev1.Pod{pod}, want: true},
		"pods are evicted":               {turns: []string{"ns/first"}, deleted: true, pods: []*corev1.Pod{pod, other}, want: true},
		"all pods are gone":              {turns: []string{"ns/first"}, deleted: true, pods: []*corev1.Pod{other}},
		"it takes too long":              {turns: []string{"ns/first"}, deleted: true, pods: []*corev1.Pod{pod}, begun: nodestate.StaleAfter + 1},
		"a move without order":           {deleted: true, pods: []*corev1.Pod{pod}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{NodeName: "node"}}
			if c.deleted {
				claim.DeletionTimestamp = &metav1.Time{Time: now}
			}
			f := &disruptor.InFlightMove{
				Mark: nodestate.MoveMark{Turns: c.turns, Begun: now.Add(-c.begun)}, Leaving: []*karpv1.NodeClaim{claim},
				Pods: map[string][]*corev1.Pod{"node": c.pods},
			}
			if got := f.IsInTurn(now); got != c.want {
				t.Errorf("they leave one after the other: %v, want %v", got, c.want)
			}
		})
	}
}

// TestMoveSaysWhoseTurnItIs: the order of a move is on its claims for the leader that drains them, and until all pods
// have left no other move starts.
func TestMoveSaysWhoseTurnItIs(t *testing.T) {
	t.Parallel()
	f := newPark(t, 4, "1500m", "400m", "t3.medium")
	s, err := f.Moves.ReadInput(t.Context(), f.now())
	f.check(t, err)
	goes, turns := &s.In.Snapshot.Nodes[0], []string(nil)
	for i := range goes.Pods {
		turns = append(turns, goes.Pods[i].ID())
	}
	if len(turns) == 0 {
		t.Fatalf("node %s has no pods", goes.Name)
	}
	f.check(t, f.Moves.BeginAll(t.Context(), s, disruption.Underutilized, []consolidation.Move{{
		Nodes: []string{goes.Name}, Pods: len(turns), EvictionOrder: turns, Saving: catalog.Dollar / 100,
	}}, f.now()))
	mark, err := nodestate.MoveOf(f.claim(t, goes.Claim))
	f.check(t, err)
	if mark == nil || !slices.Equal(mark.Turns, turns) {
		t.Fatalf("the mark is %+v, want turns %v", mark, turns)
	}
	f.check(t, f.Moves.Save(t.Context(), f.now()))
	for _, c := range f.claims(t) {
		if other, _ := nodestate.MoveOf(&c); other != nil && other.ID != mark.ID {
			t.Errorf("%s was started, too: %+v", c.Name, other)
		}
	}
	f.live(t)
	if got := f.types(); got != "1 t3.medium" {
		t.Errorf("left in the end: %s\n%s", got, f.log)
	}
}
