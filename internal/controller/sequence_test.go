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

// sequenceRig is a rig with the two nodes of a move whose pods are evicted one after the other. The pods "api" and
// "second" run on one node, and "web", "first" and "third" on the other.
type sequenceRig struct {
	*rig
	*evictionRecorder
	names []string // of the claims
}

func newSequenceRig(t *testing.T) sequenceRig {
	t.Helper()
	r := newRig(t, "t3.medium")
	claims := r.createServing(t, "api", "web")
	out := sequenceRig{r, &evictionRecorder{Evictor: r.Claims.Evictor, guarded: map[string]bool{}}, nil}
	r.Claims.Evictor = out.evictionRecorder
	nodes := map[string]string{} // by pod
	var pods corev1.PodList
	if err := r.api.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		nodes[p.Name] = p.Spec.NodeName
	}
	for name, neighbor := range map[string]string{"first": "web", "second": "api", "third": "web"} {
		out.addPod(t, name, nodes[neighbor])
	}
	mark := nodestate.MoveMark{
		ID: "m", Reason: disruption.Underutilized, Started: r.now(), Nodes: 2, Pods: 5, Committed: true,
		EvictionOrder: []string{"ns/first", "ns/second", "ns/web", "ns/third", "ns/api"},
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

// addPod adds a pod to a node. All pods of addPod belong to the same ReplicaSet.
func (r sequenceRig) addPod(t *testing.T, name, node string) {
	t.Helper()
	pod := resident(name, "ReplicaSet", "")
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
	r.create(t, pod)
}

func (r sequenceRig) passSeconds(t *testing.T, n int) {
	t.Helper()
	for range n * int(time.Second/nodeclaim.TurnPoll) {
		for _, name := range r.names {
			r.reconcileClaim(t, name)
		}
		r.ahead += nodeclaim.TurnPoll
	}
}

// TestPodsAreEvictedInTurn: the pods of both nodes are evicted in the order of the move. Each pod is evicted when the
// successor that the ReplicaSet creates for the previous pod is scheduled.
func TestPodsAreEvictedInTurn(t *testing.T) {
	t.Parallel()
	r := newSequenceRig(t)
	for _, step := range []struct{ successor, want string }{
		{"", "first"},
		{"a", "first second"},
		{"b", "first second web third"}, // "web" has no owner, so no successor is awaited
		{"c", "first second web third api"},
	} {
		if step.successor != "" {
			r.addPod(t, step.successor, "elsewhere")
		}
		r.passSeconds(t, 3)
		if got := r.order(); got != step.want {
			t.Fatalf("with the successor %q, evicted are %q, want %q\n%s", step.successor, got, step.want, r.log)
		}
	}
	r.passSeconds(t, 30)
	if len(r.claims(t)) > 0 {
		t.Errorf("%d claims are left\n%s", len(r.claims(t)), r.log)
	}
}

// TestUrgentEvictionsHaveNoOrder: all pods are evicted at once from an interrupted node, and from a node that a user
// deletes before its move is committed.
func TestUrgentEvictionsHaveNoOrder(t *testing.T) {
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
			r.Claims.Evictor = r.evictionRecorder
			r.passSeconds(t, 2)
			if got := r.order(); len(strings.Fields(got)) != 5 {
				t.Errorf("evicted are %q, want all five\n%s", got, r.log)
			}
		})
	}
}

// TestWaitForSuccessorIsLimited: a successor that does not appear, or a pod that may not be evicted, delays the other
// pods by at most ten seconds, even if the process restarts meanwhile.
func TestWaitForSuccessorIsLimited(t *testing.T) {
	t.Parallel()
	// guarded is the pod that may not be evicted: "first", or no pod.
	for name, guarded := range map[string]string{"no successor": "", "a PodDisruptionBudget": "first"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSequenceRig(t)
			r.guarded[guarded] = true
			want := "first"
			if guarded == "first" {
				want = ""
			}
			r.passSeconds(t, 3)
			if got := r.order(); got != want {
				t.Fatalf("evicted are %q, want %q\n%s", got, want, r.log)
			}
			evictor := r.Claims.Evictor
			r.start(t)
			r.Claims.Evictor = evictor
			r.passSeconds(t, 15)
			if got := r.order(); len(got) < len("second web third api") {
				t.Errorf("evicted are %q, want at least all except \"first\"\n%s", got, r.log)
			}
		})
	}
}

// TestEvictsInOrder: EvictsInOrder returns true until the pods of the order have left the nodes of the move, but at
// most for StaleAfter. Until then no other move starts, because the pods still to be evicted need the free room.
func TestEvictsInOrder(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first"}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "agent"}}
	for name, c := range map[string]struct {
		order   []string
		started time.Duration // how long ago the move started
		deleted bool
		pods    []*corev1.Pod
		want    bool
	}{
		"its replacements are launching": {order: []string{"ns/first"}, pods: []*corev1.Pod{pod}, want: true},
		"pods are evicted":               {order: []string{"ns/first"}, deleted: true, pods: []*corev1.Pod{pod, other}, want: true},
		"all pods are gone":              {order: []string{"ns/first"}, deleted: true, pods: []*corev1.Pod{other}},
		"the move takes too long": {order: []string{"ns/first"}, deleted: true, pods: []*corev1.Pod{pod},
			started: nodestate.StaleAfter + 1},
		"a move without order": {deleted: true, pods: []*corev1.Pod{pod}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{NodeName: "node"}}
			if c.deleted {
				claim.DeletionTimestamp = &metav1.Time{Time: now}
			}
			f := &disruptor.InFlightMove{
				Mark: nodestate.MoveMark{EvictionOrder: c.order, Started: now.Add(-c.started)}, Leaving: []*karpv1.NodeClaim{claim},
				Pods: map[string][]*corev1.Pod{"node": c.pods},
			}
			if got := f.EvictsInOrder(now); got != c.want {
				t.Errorf("EvictsInOrder returns %v, want %v", got, c.want)
			}
		})
	}
}

// TestMoveHasEvictionOrder: the mark of a move on its claims has the order in which the pods are evicted. No other move
// starts before all these pods have left.
func TestMoveHasEvictionOrder(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 4, "1500m", "400m", "t3.medium")
	s, err := f.Moves.ReadInput(t.Context(), f.now())
	f.check(t, err)
	node, order := &s.In.Snapshot.Nodes[0], []string(nil)
	for i := range node.Pods {
		order = append(order, node.Pods[i].ID())
	}
	if len(order) == 0 {
		t.Fatalf("node %s has no pods", node.Name)
	}
	f.check(t, f.Moves.StartAll(t.Context(), s, disruption.Underutilized, []consolidation.Move{{
		Nodes: []string{node.Name}, Pods: len(order), EvictionOrder: order, Saving: catalog.Dollar / 100,
	}}, f.now()))
	mark, err := nodestate.MoveOf(f.claim(t, node.Claim))
	f.check(t, err)
	if mark == nil || !slices.Equal(mark.EvictionOrder, order) {
		t.Fatalf("the mark is %+v, want the order %v", mark, order)
	}
	f.check(t, f.Moves.SearchSavings(t.Context(), f.now()))
	for _, c := range f.claims(t) {
		if other, _ := nodestate.MoveOf(&c); other != nil && other.ID != mark.ID {
			t.Errorf("another move was started, of %s: %+v", c.Name, other)
		}
	}
	f.converge(t)
	if got := f.typeCounts(); got != "1 t3.medium" {
		t.Errorf("remaining: %s, want 1 t3.medium\n%s", got, f.log)
	}
}
