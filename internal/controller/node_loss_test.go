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

// readyNode creates one pod, and returns when its node is ready.
func (r *rig) readyNode(t *testing.T) corev1.Node {
	t.Helper()
	r.classes(t)
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.work(t)
	r.join(t)
	r.work(t)
	r.bind(t)
	if claim := findClaim(t, r); !claim.StatusConditions().IsReady() {
		t.Fatalf("the claim is not ready: %+v\n%s", claim.Status.Conditions, r.log)
	}
	return r.nodes(t)[0]
}

// tearOut removes the finalizers of a Node and deletes it, as a user might.
func (r *rig) tearOut(t *testing.T, node corev1.Node) {
	t.Helper()
	node.Finalizers = nil
	if err := r.api.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	if err := r.api.Delete(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
}

// TestClaimFollowsItsNode: if a Node disappears in spite of our finalizer, its instance does not run on forever.
func TestClaimFollowsItsNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.tearOut(t, r.readyNode(t))
	if wait := r.work(t); findClaim(t, r).DeletionTimestamp != nil || wait <= 0 {
		t.Fatalf("the claim is deleted at once, or is reconciled in %s: a restarting kubelet needs time", wait)
	}
	r.ahead += lifecycle.LostTimeout
	r.finish(t)
	if len(r.instances())+len(r.claims(t)) > 0 {
		t.Errorf("remaining: %d instances, %d claims\n%s", len(r.instances()), len(r.claims(t)), r.log)
	}
}

// TestNodeThatCameBackIsPrepared: a restarted kubelet creates its Node again, with the taint that keeps pods away.
func TestNodeThatCameBackIsPrepared(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.tearOut(t, r.readyNode(t))
	claim := findClaim(t, r)
	r.create(t, r.nodeOf(t, *claim))
	node := r.nodes(t)[0]
	node.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute)) // the API server's clock is behind ours
	if err := r.api.Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	r.ahead += 2 * time.Minute
	r.work(t)
	node = r.nodes(t)[0]
	if nodeclaim.HasTaint(&node, karpv1.TaintUnregistered) || node.Labels[karpv1.LabelInitialized] != "true" || len(node.Finalizers) == 0 {
		t.Errorf("the Node is not prepared: %+v %+v\n%s", node.ObjectMeta, node.Spec, r.log)
	}
	if claim := findClaim(t, r); claim.Status.NodeName != node.Name || !claim.StatusConditions().IsReady() {
		t.Errorf("status of the claim: %+v", claim.Status)
	}
}

// TestPrepare covers the labels, annotations and taints that a Node gets when it joins.
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
		// The process ended before it recorded this on the claim, and the CNI has removed its taint since.
		"prepared before": {map[string]string{karpv1.LabelRegistered: "true"}, false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}}
		nodeclaim.Prepare(node, claim)
		if nodeclaim.HasTaint(node, "cni") != c.wantTaint || nodeclaim.HasTaint(node, "team") != c.wantTaint {
			t.Errorf("%s: taints %v", name, node.Spec.Taints)
		}
		if node.Annotations["a"] != "b" || node.Annotations[conversion.AnnotationPods] != "" {
			t.Errorf("%s: annotations %v: the list of pods belongs on the claim only, and may have 96 KiB", name, node.Annotations)
		}
	}
}

// silence marks a Node as node-lifecycle-controller does when its kubelet stops reporting.
func (r *rig) silence(t *testing.T, name string) {
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

// TestTwoNodesOfOneMachine: the kubelet registers under another name. While both Nodes are ready the claim waits; the Node
// whose kubelet stops reporting is the stray, whether it was the first or not.
func TestTwoNodesOfOneMachine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		registered bool // the first was registered before the second appeared
		silent     string
		want       string
	}{
		"the first stops reporting before registration":  {false, "first", "second"},
		"the second stops reporting before registration": {false, "second", "first"},
		"the first stops reporting after registration":   {true, "first", "second"},
		"the second stops reporting after registration":  {true, "second", "first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.classes(t)
			r.pending(t, "web", "500m", "512Mi")
			r.plan(t)
			r.work(t)
			claim := findClaim(t, r)
			first := r.nodeOf(t, *claim)
			r.create(t, first)
			if c.registered {
				r.work(t)
			}
			second := r.renamed(t, *claim)
			r.create(t, second)
			names := map[string]string{"first": first.Name, "second": second.Name}
			r.work(t)
			registered, _ := findClaim(t, r).StatusConditions().Find(karpv1.ConditionRegistered)
			if len(r.nodes(t)) != 2 || (registered.Status == "True") != c.registered || !c.registered &&
				registered.Reason != karpv1.ReasonMultipleNodesFound {
				t.Fatalf("%d Nodes; condition of the claim: %+v", len(r.nodes(t)), registered)
			}
			r.silence(t, names[c.silent])
			r.work(t)
			r.work(t)
			claim = findClaim(t, r)
			nodes := r.nodes(t)
			if len(nodes) != 1 || nodes[0].Name != names[c.want] || claim.Status.NodeName != names[c.want] || !claim.StatusConditions().IsReady() {
				t.Fatalf("%d Nodes, the first is %s, status of the claim: %+v\n%s", len(nodes), nodes[0].Name, claim.Status, r.log)
			}
			if nodeclaim.HasTaint(&nodes[0], karpv1.TaintUnregistered) || len(nodes[0].Finalizers) == 0 ||
				len(r.instances()) != 1 || claim.DeletionTimestamp != nil {
				t.Errorf("%+v; %d instances", nodes[0].ObjectMeta, len(r.instances()))
			}
		})
	}
}

// TestClocksApart: the API server's clock is five minutes behind or ahead of ours and AWS's. Pods get nodes
// in both cases, and deleted nodes go as fast as with equal clocks.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]time.Duration{
		"ours is ahead": -5*time.Minute - 10*time.Second, "ours is behind": 5*time.Minute + 10*time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			r.server, r.ahead = server, -server
			node := r.readyNode(t)
			if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
				t.Fatal(err)
			}
			if claims, instances := r.claims(t), r.instances(); len(claims) != 1 || claims[0].DeletionTimestamp != nil || len(instances) != 1 {
				t.Errorf("%d claims, %d instances\n%s", len(claims), len(instances), r.log)
			}
			if err := r.api.Delete(t.Context(), &node); err != nil {
				t.Fatal(err)
			}
			begun := r.ahead
			r.finish(t)
			if took := r.ahead - begun; len(r.claims(t))+len(r.instances()) > 0 || took > time.Minute {
				t.Errorf("left after %s: %d claims, %d instances\n%s", took, len(r.claims(t)), len(r.instances()), r.log)
			}
		})
	}
}
