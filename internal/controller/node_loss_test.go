package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// readyNode creates one pod, launches a node for it, binds the pod, and returns the ready Node.
func (r *rig) readyNode(t *testing.T) corev1.Node {
	t.Helper()
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	r.bind(t)
	if claim := onlyClaim(t, r); !claim.StatusConditions().IsReady() {
		t.Fatalf("the claim is not ready: %+v\n%s", claim.Status.Conditions, r.log)
	}
	return r.nodes(t)[0]
}

// deleteNodeByForce removes the finalizers of a Node and deletes the Node, as a user might.
func (r *rig) deleteNodeByForce(t *testing.T, node corev1.Node) {
	t.Helper()
	node.Finalizers = nil
	if err := r.api.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	if err := r.api.Delete(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
}

// TestClaimFollowsItsNode: if a Node disappears in spite of Joiner's finalizer, its claim and instance are removed
// after LostTimeout.
func TestClaimFollowsItsNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.deleteNodeByForce(t, r.readyNode(t))
	if wait := r.reconcileClaims(t); onlyClaim(t, r).DeletionTimestamp != nil || wait <= 0 {
		t.Fatalf("the claim is deleted before a restarting kubelet can create the Node again, or waits %s, want more than 0", wait)
	}
	r.ahead += lifecycle.LostTimeout
	r.finish(t)
	if len(r.instances())+len(r.claims(t)) > 0 {
		t.Errorf("remaining: %d instances, %d claims\n%s", len(r.instances()), len(r.claims(t)), r.log)
	}
}

// TestRecreatedNodeIsPrepared: a Node was deleted, and the restarted kubelet creates it again, with the unregistered
// taint. Joiner prepares the new Node like the first one.
func TestRecreatedNodeIsPrepared(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.deleteNodeByForce(t, r.readyNode(t))
	claim := onlyClaim(t, r)
	r.create(t, r.nodeOf(t, *claim))
	node := r.nodes(t)[0]
	node.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute)) // as if the API server's clock were behind
	if err := r.api.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	r.ahead += 2 * time.Minute
	r.reconcileClaims(t)
	node = r.nodes(t)[0]
	if nodeclaim.HasTaint(&node, karpv1.TaintUnregistered) || node.Labels[karpv1.LabelInitialized] != "true" || len(node.Finalizers) == 0 {
		t.Errorf("the Node is not prepared: %+v %+v\n%s", node.ObjectMeta, node.Spec, r.log)
	}
	if claim := onlyClaim(t, r); claim.Status.NodeName != node.Name || !claim.StatusConditions().IsReady() {
		t.Errorf("the status of the claim is %+v, want ready with the new Node", claim.Status)
	}
}

// TestPrepare covers the annotations and taints that a Node gets when it joins.
func TestPrepare(t *testing.T) {
	t.Parallel()
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c", UID: "uid", Annotations: map[string]string{"a": "b", conversion.AnnotationPods: "ns/web"},
	}}
	claim.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
	claim.Spec.StartupTaints = []corev1.Taint{{Key: "cni", Effect: corev1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		labels    map[string]string
		wantTaint bool
	}{
		"bare":                        {nil, true},
		"taints set by its bootstrap": {map[string]string{karpv1.LabelDoNotSyncTaints: "true"}, false},
		// A process prepared the Node, but ended before it recorded this on the claim. Since then the CNI has removed its taint.
		"prepared before": {map[string]string{karpv1.LabelRegistered: "true"}, false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}}
		nodeclaim.Prepare(node, claim)
		if nodeclaim.HasTaint(node, "cni") != c.wantTaint || nodeclaim.HasTaint(node, "team") != c.wantTaint {
			t.Errorf("%s: the Node has the taints %v, want cni and team only on the bare Node", name, node.Spec.Taints)
		}
		if node.Annotations["a"] != "b" || node.Annotations[conversion.AnnotationPods] != "" {
			t.Errorf("%s: annotations %v, want a; the list of pods, up to 96 KiB, belongs on the claim only", name, node.Annotations)
		}
	}
}

// stopReporting sets the Node's Ready to Unknown, as the node-lifecycle-controller does.
func (r *rig) stopReporting(t *testing.T, name string) {
	t.Helper()
	for _, node := range r.nodes(t) {
		if node.Name != name {
			continue
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown"}}
		if err := r.api.Status().Update(t.Context(), &node); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStrayNodeIsDeleted: the kubelet of one instance creates a second Node under another name. While both Nodes are
// ready, a claim without a registered Node waits. When one Node stops reporting, it is deleted, and the other one is
// registered.
func TestStrayNodeIsDeleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		registered bool   // the first Node was registered before the second was created
		silent     string // the Node that stops reporting
		want       string // the Node that is registered in the end
	}{
		"the first stops reporting before registration":  {false, "first", "second"},
		"the second stops reporting before registration": {false, "second", "first"},
		"the first stops reporting after registration":   {true, "first", "second"},
		"the second stops reporting after registration":  {true, "second", "first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.reconcileClassAndPool(t)
			r.addPendingPod(t, "web", "500m", "512Mi")
			r.plan(t)
			r.reconcileClaims(t)
			claim := onlyClaim(t, r)
			first := r.nodeOf(t, *claim)
			r.create(t, first)
			if c.registered {
				r.reconcileClaims(t)
			}
			second := r.nodeNamedByID(t, *claim)
			r.create(t, second)
			names := map[string]string{"first": first.Name, "second": second.Name}
			r.reconcileClaims(t)
			registered, _ := onlyClaim(t, r).StatusConditions().Find(karpv1.ConditionRegistered)
			hasReason := c.registered || registered.Reason == karpv1.ReasonMultipleNodesFound
			if len(r.nodes(t)) != 2 || (registered.Status == "True") != c.registered || !hasReason {
				t.Fatalf("%d Nodes, want 2; Registered of the claim is %+v, want true: %t", len(r.nodes(t)), registered, c.registered)
			}
			r.stopReporting(t, names[c.silent])
			r.reconcileClaims(t)
			r.reconcileClaims(t)
			claim = onlyClaim(t, r)
			nodes := r.nodes(t)
			if len(nodes) != 1 || nodes[0].Name != names[c.want] || claim.Status.NodeName != names[c.want] || !claim.StatusConditions().IsReady() {
				t.Fatalf("%d Nodes, the first is %s, status of the claim: %+v; want only the reporting Node\n%s", len(nodes), nodes[0].Name, claim.Status, r.log)
			}
			if nodeclaim.HasTaint(&nodes[0], karpv1.TaintUnregistered) || len(nodes[0].Finalizers) == 0 ||
				len(r.instances()) != 1 || claim.DeletionTimestamp != nil {
				t.Errorf("the Node is not prepared, or its instance or claim is removed: %+v; %d instances", nodes[0].ObjectMeta, len(r.instances()))
			}
		})
	}
}

// TestClocksApart: the API server's clock is over five minutes behind or ahead of the clocks of Joiner and AWS. In both
// cases pods get nodes, and deleted nodes are removed within a minute.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	for name, serverAhead := range map[string]time.Duration{
		"the server is behind": -5*time.Minute - 10*time.Second, "the server is ahead": 5*time.Minute + 10*time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.serverAhead, r.ahead = serverAhead, -serverAhead // the server has the real time
			node := r.readyNode(t)
			if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
				t.Fatal(err)
			}
			if claims, instances := r.claims(t), r.instances(); len(claims) != 1 || claims[0].DeletionTimestamp != nil || len(instances) != 1 {
				t.Errorf("%d claims, %d instances after the sweep, want one each\n%s", len(claims), len(instances), r.log)
			}
			if err := r.api.Delete(t.Context(), &node); err != nil {
				t.Fatal(err)
			}
			start := r.ahead
			r.finish(t)
			if took := r.ahead - start; len(r.claims(t))+len(r.instances()) > 0 || took > time.Minute {
				t.Errorf("after %s, %d claims and %d instances are left; want none within a minute\n%s", took, len(r.claims(t)), len(r.instances()), r.log)
			}
		})
	}
}
