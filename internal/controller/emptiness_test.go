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

// newManyNodes returns a rig with the given number of nodes: one is launched, and its claim and Node are copied. A pod
// fills each node, so that no move is worthwhile.
func newManyNodes(t *testing.T, nodes int) *rig {
	t.Helper()
	r := newRig(t, "m5.large")
	first := r.createServing(t, "first")[0]
	var list corev1.NodeList
	if err := r.api.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Nodes, want 1; %v", len(list.Items), err)
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
		r.create(t, podThatFills(node.Name, claim.Name))
	}
	if err := r.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first"}}); err != nil {
		t.Fatal(err)
	}
	r.create(t, podThatFills(first.Status.NodeName, first.Name))
	r.ahead += 2 * time.Minute // past bindTimeout: until then, the pods that a node was planned for are counted as running on it
	return r
}

// podThatFills returns a running pod with the name that leaves almost no room on the node.
func podThatFills(node, name string) *corev1.Pod {
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

// TestEmptyNodeIsDeletedAtTheSecondPass: one of two thousand nodes becomes empty, and the second pass of the loop for
// empty nodes deletes it. The consolidation loop does not, and no other node is deleted.
func TestEmptyNodeIsDeletedAtTheSecondPass(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("two thousand nodes")
	}
	r := newManyNodes(t, 2000)
	r.Moves.Now = r.now
	pass := func() {
		if err := r.Emptiness.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	if delay := r.Emptiness.NextDelay(0); delay != disruptor.EmptinessInterval {
		t.Errorf("no node is empty, but the next pass comes after %s, want %s", delay, disruptor.EmptinessInterval)
	}
	const name = "copy-0777"
	if err := r.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Moves.Search(t.Context()); err != nil {
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
	pass()
	if names := leaving(); len(names) != 0 {
		t.Fatalf("%v are deleted after one pass, which may miss a pod that is just being bound", names)
	}
	if delay := r.Emptiness.NextDelay(0); delay != disruptor.EmptinessConfirmInterval {
		t.Errorf("a node was found empty, but the next pass comes after %s, want %s", delay, disruptor.EmptinessConfirmInterval)
	}
	r.ahead += disruptor.EmptinessConfirmInterval
	pass()
	if names := leaving(); len(names) != 1 || names[0] != name {
		t.Fatalf("%v are leaving after two passes, want %s\n%s", names, name, r.log)
	}
	claim := &karpv1.NodeClaim{}
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: name}, claim); err != nil || claim.DeletionTimestamp == nil {
		t.Errorf("the NodeClaim %s is not being deleted: %v", name, err)
	}
	if delay := r.Emptiness.NextDelay(0); delay != disruptor.EmptinessInterval {
		t.Errorf("no further node is empty, but the next pass comes after %s, want %s", delay, disruptor.EmptinessInterval)
	}
}

// TestLateBindingKeepsTheNode: a node is found empty twice. Just before its claim would be deleted, kube-scheduler
// binds a pod to the node. The claim is not deleted, and the taint of the Node is removed.
func TestLateBindingKeepsTheNode(t *testing.T) {
	t.Parallel()
	r := newManyNodes(t, 4)
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
		r.ahead += disruptor.EmptinessConfirmInterval
	}
	if late.node == "" {
		t.Fatal("the pods of the empty node were not read from the API server")
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

// lateBinding reads the pods of nodes from the API server. Before the first read, it binds a pod to the node.
type lateBinding struct {
	t    *testing.T
	rig  *rig
	node string // the first node whose pods were read
}

func (l *lateBinding) PodsNow(ctx context.Context, node string) ([]*corev1.Pod, error) {
	var tainted corev1.Node
	if err := l.rig.api.Get(ctx, client.ObjectKey{Name: node}, &tainted); err != nil || nodestate.IsOpen(&tainted) {
		l.t.Errorf("the Node %s is not tainted when its pods are read: %v", node, err)
	}
	if l.node == "" {
		l.node = node
		l.rig.create(l.t, podThatFills(node, "late"))
	}
	return (&snapshot.Reader{Live: l.rig.api}).PodsNow(ctx, node)
}

// TestConflictReopensNode: an empty node's NodeClaim is changed while the node is being removed. The deletion fails
// with a conflict, the taint of the Node is removed at once, and a later pass removes the Node.
func TestConflictReopensNode(t *testing.T) {
	t.Parallel()
	r := newManyNodes(t, 4)
	if err := r.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "copy-0001"}}); err != nil {
		t.Fatal(err)
	}
	changer := &claimChanger{t: t, rig: r}
	r.Emptiness.Live = changer
	hasFailed := false
	for range 5 {
		isUnchanged := changer.node == ""
		err := r.Emptiness.Pass(t.Context(), r.now())
		r.ahead += disruptor.EmptinessConfirmInterval
		if !isUnchanged || changer.node == "" {
			continue
		}
		hasFailed = err != nil // this pass changed the claims
		var node corev1.Node
		if err := r.api.Get(t.Context(), client.ObjectKey{Name: changer.node}, &node); err != nil || !nodestate.IsOpen(&node) {
			t.Errorf("the Node is tainted, or gone, after its claim could not be deleted: %v, taints %v", err, node.Spec.Taints)
		}
	}
	if !hasFailed {
		t.Fatal("the deletion did not fail with a conflict")
	}
	for _, c := range r.claims(t) {
		if c.Status.NodeName == changer.node && c.DeletionTimestamp == nil {
			t.Errorf("NodeClaim %s, whose node is empty, is still there\n%s", c.Name, r.log)
		}
	}
}

// claimChanger reads the pods of nodes from the API server. Before the first read, it changes all NodeClaims.
type claimChanger struct {
	t    *testing.T
	rig  *rig
	node string // the first node whose pods were read
}

func (c *claimChanger) PodsNow(ctx context.Context, node string) ([]*corev1.Pod, error) {
	if c.node == "" {
		c.node = node
		for _, claim := range c.rig.claims(c.t) {
			claim.StatusConditions().SetTrue(c.rig.now(), "Audited")
			if err := c.rig.api.Status().Update(ctx, &claim); err != nil {
				c.t.Error(err)
			}
		}
	}
	return (&snapshot.Reader{Live: c.rig.api}).PodsNow(ctx, node)
}

// TestDelayBetweenPasses: a pass starts EmptinessInterval after the start of the previous pass. After a long pass, at
// least a quarter of the interval is left for other loops.
func TestDelayBetweenPasses(t *testing.T) {
	t.Parallel()
	e := &disruptor.Emptiness{}
	for took, want := range map[time.Duration]time.Duration{
		0:           disruptor.EmptinessInterval,
		time.Second: disruptor.EmptinessInterval - time.Second,
		time.Minute: disruptor.EmptinessInterval / 4,
	} {
		if got := e.NextDelay(took); got != want {
			t.Errorf("after a pass of %s the next one waits %s, want %s", took, got, want)
		}
	}
	// A node that becomes empty just after a pass is found by the next pass and deleted by the one after it. Each pass
	// takes a second.
	untilFound := e.NextDelay(time.Second)
	e.HasUnconfirmed = true
	if sum := untilFound + e.NextDelay(time.Second) + 2*time.Second; sum > 5*time.Second {
		t.Errorf("an empty node is deleted after %s, want 5 s at most", sum)
	}
}

// TestNoPodMovesToAnEmptyNode: one of two nodes is empty, and is removed. The other node's pod is not moved to it.
func TestNoPodMovesToAnEmptyNode(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 2, "1500m", "1500m", "t3.medium")
	f.replicas = 1
	pods := f.pods(t)
	f.check(t, f.api.Delete(t.Context(), &pods[0]))
	if err := f.Moves.Search(t.Context()); err != nil {
		t.Fatal(err)
	}
	if started := metricCount(t, f.Moves.Metrics.Started, "Underutilized"); started != 0 {
		t.Fatalf("%v moves were started, want none\n%s", started, f.log)
	}
	f.converge(t)
	left := f.pods(t)
	if got := f.typeCounts(); got != "1 t3.medium" || len(left) != 1 || left[0].Name != pods[1].Name ||
		left[0].Spec.NodeName != pods[1].Spec.NodeName {
		t.Errorf("%s and pods %v are left; want 1 t3.medium, and %s still on %s\n%s",
			got, podNamesAndNodes(left), pods[1].Name, pods[1].Spec.NodeName, f.log)
	}
}

func podNamesAndNodes(pods []corev1.Pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.Name+" on "+p.Spec.NodeName)
	}
	return out
}

// TestEmptyNodeDoesNotWaitForPlans: while the consolidation loop makes a plan, which may take long, empty nodes are
// removed. A node that a plan uses for a pending pod is kept.
func TestEmptyNodeDoesNotWaitForPlans(t *testing.T) {
	t.Parallel()
	r := newManyNodes(t, 4)
	r.create(t, &corev1.Pod{ // so that there is a pod to plan
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "waits", OwnerReferences: podThatFills("", "").OwnerReferences},
		Spec:       podThatFills("", "").Spec,
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}},
	})
	r.Moves.Now = r.now
	started, proceed, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	r.Moves.Solve = func(s cluster.Snapshot, m catalog.Market) packing.Plan {
		close(started)
		<-proceed
		r.Moves.Solve = provisioner.Plan
		return provisioner.Plan(s, m)
	}
	go func() { done <- r.Moves.Search(context.WithoutCancel(t.Context())) }()
	<-started
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
	if leaving != 1 { // the pending pod needs one of the two empty nodes
		t.Errorf("%d nodes are leaving while a plan is made, want 1\n%s", leaving, r.log)
	}
	close(proceed)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestLockCountsChosenNodes: a node that one loop has chosen counts as leaving in all loops. This ends when the node is
// released, or LockMemory after the start of its disruption.
func TestLockCountsChosenNodes(t *testing.T) {
	t.Parallel()
	var lock nodestate.DisruptionLock
	now := time.Now()
	lock.NoteStart("chosen", now)
	lock.NoteStart("released", now)
	lock.Forget("released")
	for claim, want := range map[types.UID]bool{"chosen": true, "released": false, "other": false} {
		early := lock.IsChosen(claim, now.Add(-time.Minute)) // for a loop that started before the choice
		late := lock.IsChosen(claim, now.Add(nodestate.LockMemory))
		if early != want || late != want {
			t.Errorf("%s is chosen: %v a minute before, %v at the end of LockMemory; want %v", claim, early, late, want)
		}
	}
	if lock.IsChosen("chosen", now.Add(nodestate.LockMemory+1)) {
		t.Error("a start older than LockMemory is still remembered")
	}
}
