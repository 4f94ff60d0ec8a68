package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// newMultitude has one launched node, and copies of it: claims and Nodes like its own, each with a pod
// that fills it, so that no move is worthwhile.
func newMultitude(t *testing.T, nodes int) *rig {
	t.Helper()
	r := newRig(t, "m5.large")
	first := r.servingNodes(t, "first")[0]
	var list corev1.NodeList
	if err := r.api.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Nodes, %v", len(list.Items), err)
	}
	for i := range nodes - 1 {
		claim, node := first.DeepCopy(), list.Items[0].DeepCopy()
		claim.Name, claim.ResourceVersion, claim.UID = fmt.Sprintf("copy-%04d", i), "", ""
		node.Name, node.ResourceVersion = "node-of-"+claim.Name, ""
		claim.Status.ProviderID = fmt.Sprintf("aws:///us-east-1a/i-%017d", i)
		claim.Status.NodeName, node.Spec.ProviderID = node.Name, claim.Status.ProviderID
		node.Labels[corev1.LabelHostname] = node.Name
		for k := range node.OwnerReferences {
			node.OwnerReferences[k].Name = claim.Name
		}
		claim.StatusConditions().SetTrue(r.now(), karpv1.ConditionConsolidatable) // as the first scan would set it
		status := claim.Status.DeepCopy()
		r.create(t, claim)
		claim.Status = *status
		if err := r.api.Status().Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		r.create(t, node)
		r.create(t, residentOf(node.Name, claim.Name))
	}
	if err := r.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first"}}); err != nil {
		t.Fatal(err)
	}
	r.create(t, residentOf(first.Status.NodeName, first.Name))
	r.ahead += 2 * time.Minute // the launches for the bound pods count no longer
	return r
}

// residentOf returns a pod that has long run on the Node and leaves almost no room.
func residentOf(node, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: types.UID("db"), Controller: ptr.To(true),
		}}},
		Spec: corev1.PodSpec{
			NodeName: node, Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1700m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// TestEmptyNodeGoesAtTheSecondLook: one of two thousand nodes becomes empty. It is deleted after two passes of the
// loop, independent of the consolidation loop, and no other node is changed.
func TestEmptyNodeGoesAtTheSecondLook(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("two thousand nodes")
	}
	r := newMultitude(t, 2000)
	r.Moves.Now = r.now
	look := func() {
		if err := r.Emptiness.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if pause := r.Emptiness.Pause(0); pause != disruptor.EmptinessEvery {
		t.Errorf("nothing is empty, but the next pass comes after %s, want %s", pause, disruptor.EmptinessEvery)
	}
	const name = "copy-0777"
	if err := r.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Moves.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	leaving := func() (names []string) {
		for _, c := range r.claims(t) {
			if c.DeletionTimestamp != nil || c.StatusConditions().IsTrue(karpv1.ConditionDisruptionReason) {
				names = append(names, c.Name)
			}
		}
		return names
	}
	look()
	if names := leaving(); len(names) != 0 {
		t.Fatalf("%v are deleted after one pass, which may miss a pod that is just being bound", names)
	}
	if pause := r.Emptiness.Pause(0); pause != disruptor.EmptinessAgain {
		t.Errorf("a node was found empty, but the next pass comes after %s, want %s", pause, disruptor.EmptinessAgain)
	}
	r.ahead += disruptor.EmptinessAgain
	look()
	if names := leaving(); len(names) != 1 || names[0] != name {
		t.Fatalf("%v are leaving after two passes, want %s\n%s", names, name, r.log)
	}
	claim := &karpv1.NodeClaim{}
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: name}, claim); err != nil || claim.DeletionTimestamp == nil {
		t.Errorf("its claim is not being deleted: %v", err)
	}
	if pause := r.Emptiness.Pause(0); pause != disruptor.EmptinessEvery {
		t.Errorf("no new node is empty, but the next pass comes after %s, want %s", pause, disruptor.EmptinessEvery)
	}
}

// TestPodThatComesAtTheLastMomentKeepsItsNode: kube-scheduler binds a pod after the node was found empty for the second time, and before
// its claim is deleted. The claim is not deleted, and the taint of the Node is removed.
func TestPodThatComesAtTheLastMomentKeepsItsNode(t *testing.T) {
	t.Parallel()
	r := newMultitude(t, 4)
	const name = "copy-0001"
	if err := r.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
		t.Fatal(err)
	}
	late := &lateBinding{t: t, rig: r}
	r.Emptiness.Live = late
	for range 3 {
		if err := r.Emptiness.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
		r.ahead += disruptor.EmptinessAgain
	}
	if late.node == "" {
		t.Fatal("the API server was not asked for new pods")
	}
	for _, c := range r.claims(t) {
		if c.DeletionTimestamp != nil {
			t.Errorf("NodeClaim %s is deleted, although a pod was bound to its node\n%s", c.Name, r.log)
		}
	}
	var node corev1.Node
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: late.node}, &node); err != nil || !nodestate.IsOpen(&node) {
		t.Errorf("the Node is tainted, or gone: %v, taints %v", err, node.Spec.Taints)
	}
}

// lateBinding binds a pod to the first Node that is asked for, just before it answers.
type lateBinding struct {
	t    *testing.T
	rig  *rig
	node string
}

func (l *lateBinding) PodsNow(ctx context.Context, node string) ([]*corev1.Pod, error) {
	var closed corev1.Node
	if err := l.rig.api.Get(ctx, client.ObjectKey{Name: node}, &closed); err != nil || nodestate.IsOpen(&closed) {
		l.t.Errorf("the Node %s is not tainted when its pods are read: %v", node, err)
	}
	if l.node == "" {
		l.node = node
		l.rig.create(l.t, residentOf(node, "late"))
	}
	return (&snapshot.Reader{Live: l.rig.api}).PodsNow(ctx, node)
}

// TestConflictReopensNode: an empty node's NodeClaim is changed while the node is being removed. The deletion fails
// with a conflict, the taint of the Node is removed at once, and a later pass removes the Node.
func TestConflictReopensNode(t *testing.T) {
	t.Parallel()
	r := newMultitude(t, 4)
	if err := r.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "copy-0001"}}); err != nil {
		t.Fatal(err)
	}
	busy := &busyClaims{t: t, rig: r}
	r.Emptiness.Live = busy
	failed := false
	for range 5 {
		isNew := busy.node == ""
		err := r.Emptiness.Pass(t.Context(), r.now())
		r.ahead += disruptor.EmptinessAgain
		if !isNew || busy.node == "" {
			continue
		}
		failed = err != nil
		var node corev1.Node
		if err := r.api.Get(t.Context(), client.ObjectKey{Name: busy.node}, &node); err != nil || !nodestate.IsOpen(&node) {
			t.Errorf("the Node is tainted, or gone, after its claim could not be deleted: %v, taints %v", err, node.Spec.Taints)
		}
	}
	if !failed {
		t.Fatal("the deletion met no conflict")
	}
	for _, c := range r.claims(t) {
		if c.Status.NodeName == busy.node && c.DeletionTimestamp == nil {
			t.Errorf("NodeClaim %s, whose node is empty, is still there\n%s", c.Name, r.log)
		}
	}
}

// busyClaims changes all NodeClaims when it is asked for pods for the first time.
type busyClaims struct {
	t    *testing.T
	rig  *rig
	node string // for which it was asked first
}

func (b *busyClaims) PodsNow(ctx context.Context, node string) ([]*corev1.Pod, error) {
	if b.node == "" {
		b.node = node
		for _, c := range b.rig.claims(b.t) {
			c.StatusConditions().SetTrue(b.rig.now(), "Audited")
			if err := b.rig.api.Status().Update(ctx, &c); err != nil {
				b.t.Error(err)
			}
		}
	}
	return (&snapshot.Reader{Live: b.rig.api}).PodsNow(ctx, node)
}

// TestLooksLeaveRoom: scans for empty nodes start as often as they should, and are spaced out when they take long.
func TestLooksLeaveRoom(t *testing.T) {
	t.Parallel()
	e := &disruptor.Emptiness{}
	for took, want := range map[time.Duration]time.Duration{0: disruptor.EmptinessEvery,
		time.Second: disruptor.EmptinessEvery - time.Second, time.Minute: disruptor.EmptinessEvery / 4} {
		if got := e.Pause(took); got != want {
			t.Errorf("after a pass of %s the next one waits %s, want %s", took, got, want)
		}
	}
	// Two scans of a second each, and the longest pauses, are within five seconds.
	waits := e.Pause(time.Second)
	e.IsNews = true
	if sum := waits + e.Pause(time.Second) + 2*time.Second; sum > 5*time.Second {
		t.Errorf("a node that is empty goes after %s", sum)
	}
}

// TestNobodyIsMovedToWhereNobodyIs: one of two nodes is empty. The empty node is removed. No pod moves onto it to
// remove the other node.
func TestNobodyIsMovedToWhereNobodyIs(t *testing.T) {
	t.Parallel()
	f := newPark(t, 2, "1500m", "1500m", "t3.medium")
	f.wanted = 1
	pods := f.pods(t)
	f.check(t, f.api.Delete(t.Context(), &pods[0]))
	if err := f.Moves.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if begun := counted(t, f.Moves.Metrics.Begun, "Underutilized"); begun != 0 {
		t.Fatalf("%v moves were started\n%s", begun, f.log)
	}
	f.live(t)
	left := f.pods(t)
	if got := f.types(); got != "1 t3.medium" || len(left) != 1 || left[0].Name != pods[1].Name ||
		left[0].Spec.NodeName != pods[1].Spec.NodeName {
		t.Errorf("remaining: %s, and pods %v; %s was on %s\n%s", got, podNamesAndNodes(left), pods[1].Name, pods[1].Spec.NodeName, f.log)
	}
}

func podNamesAndNodes(pods []corev1.Pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.Name+" on "+p.Spec.NodeName)
	}
	return out
}

// TestEmptyNodeDoesNotWaitForPlans: planning the pods of thousands of nodes, or continuing moves, may take long. Empty
// nodes are removed meanwhile, and the nodes chosen by one loop count in the budgets of the other.
func TestEmptyNodeDoesNotWaitForPlans(t *testing.T) {
	t.Parallel()
	r := newMultitude(t, 4)
	r.create(t, &corev1.Pod{ // so that there is a pod to plan
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "waits", OwnerReferences: residentOf("", "").OwnerReferences},
		Spec:       residentOf("", "").Spec,
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}},
	})
	r.Moves.Now = r.now
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	r.Moves.Solve = func(s cluster.Snapshot, m catalog.Market) packing.Plan {
		close(begun)
		<-goOn
		r.Moves.Solve = provisioner.Plan
		return provisioner.Plan(s, m)
	}
	go func() { done <- r.Moves.Look(context.WithoutCancel(t.Context())) }()
	<-begun
	for _, name := range []string{"copy-0000", "copy-0001"} {
		if err := r.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := r.Emptiness.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
	}
	leaving := 0
	for _, c := range r.claims(t) {
		if c.DeletionTimestamp != nil {
			leaving++
		}
	}
	if leaving != 1 { // the pending pod uses one of the two
		t.Errorf("%d nodes are leaving while a plan is made, want 1\n%s", leaving, r.log)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestGateCountsWhatWasChosen: chosen nodes count as leaving in all loops at once, until they are released.
func TestGateCountsWhatWasChosen(t *testing.T) {
	t.Parallel()
	var g nodestate.DisruptionLock
	now := time.Now()
	g.Note("chosen", now)
	g.Note("stays", now)
	g.Forget("stays")
	for claim, want := range map[types.UID]bool{"chosen": true, "stays": false, "other": false} {
		// A loop that started before the choice counts the chosen node too.
		if early, late := g.Going(claim, now.Add(-time.Minute)), g.Going(claim, now.Add(nodestate.LockMemory)); early != want || late != want {
			t.Errorf("%s is going: %v and %v, want %v", claim, early, late, want)
		}
	}
	if g.Going("chosen", now.Add(nodestate.LockMemory+1)) {
		t.Error("a start older than LockMemory is still remembered")
	}
}
