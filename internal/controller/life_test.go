package controller

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/gc"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
)

// TestPodGetsNode is the main scenario from end to end: a pending pod gets a claim, an instance and a Node. When the
// pod is deleted, all of them are removed.
func TestPodGetsNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium", "t3.large", "t4g.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	if n := len(r.claims(t)); n != 1 {
		t.Fatalf("%d claims for one pod, want 1\n%s", n, r.log)
	}

	r.reconcileClaims(t)
	claim, launched := r.claims(t)[0], r.instances()
	if len(launched) != 1 || claim.Status.ProviderID != "aws:///"+launched[0].Zone+"/"+launched[0].ID {
		t.Fatalf("launched %d instances, want 1; the claim has provider ID %q\n%s", len(launched), claim.Status.ProviderID, r.log)
	}
	for key, want := range map[string]string{
		corev1.LabelInstanceTypeStable: "t4g.medium", // the cheapest
		corev1.LabelArchStable:         "arm64", "team": "a", karpv1.LabelNodePool: "apps", karpv1.LabelCapacityType: "on-demand",
		corev1.LabelTopologyZone: launched[0].Zone, awsv1.LabelNodeClass: "default", awsv1.LabelInstanceFamily: "t4g",
	} {
		if got := claim.Labels[key]; got != want {
			t.Errorf("label %s of the claim is %q, want %q", key, got, want)
		}
	}
	if data := launched[0].UserData; !strings.Contains(data, "karpenter.sh/unregistered") || !strings.Contains(data, "https://api.example") {
		t.Errorf("the user data lacks the unregistered taint or the endpoint of the cluster:\n%s", data)
	}

	r.join(t)
	r.reconcileClaims(t)
	node := r.nodes(t)[0]
	if nodeclaim.HasTaint(&node, karpv1.TaintUnregistered) || !nodeclaim.HasTaint(&node, "team") ||
		node.Labels[karpv1.LabelInitialized] != "true" ||
		node.Labels["team"] != "a" || !slices.Contains(node.Finalizers, karpv1.FinalizerTermination) {
		t.Fatalf("the Node is not prepared: %+v %+v", node.ObjectMeta, node.Spec)
	}
	if claim = r.claims(t)[0]; !claim.StatusConditions().IsReady() {
		t.Errorf("the claim is not ready: %+v", claim.Status.Conditions)
	}

	r.bind(t)
	r.removeEmptyNodes(t)
	if c := r.claims(t)[0]; c.DeletionTimestamp != nil {
		t.Fatal("a node with a pod on it was removed")
	}
	if err := r.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	r.removeEmptyNodes(t)
	r.finish(t)
	if len(r.instances())+len(r.claims(t))+len(r.nodes(t)) > 0 {
		t.Errorf("remaining: %d instances, %d claims, %d nodes\n%s", len(r.instances()), len(r.claims(t)), len(r.nodes(t)), r.log)
	}
	r.ahead += 2 * gc.TemplateLife
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	if left, err := r.Sweeper.Fleet.SweepTemplates(t.Context(), nil); err != nil || left != 0 {
		t.Errorf("%d launch templates are left, want none; %v", left, err)
	}
}

// removeEmptyNodes runs the loop for empty nodes twice, so that it deletes the claims of nodes that are empty in both
// runs.
func (r *rig) removeEmptyNodes(t *testing.T) {
	t.Helper()
	for range 2 {
		if err := r.Emptiness.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
	}
}

// finish reconciles the claims until none is left. After each round, the clock advances until the last claim is due
// again.
func (r *rig) finish(t *testing.T) {
	t.Helper()
	for range 100 {
		if len(r.claims(t)) == 0 {
			return
		}
		r.ahead += r.reconcileClaims(t)
	}
}

func TestInstanceOfADeletedNodeIsTerminated(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	r.bind(t)
	node := r.nodes(t)[0]
	if err := r.api.Delete(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
	r.finish(t)
	if len(r.instances())+len(r.claims(t))+len(r.nodes(t)) > 0 {
		t.Errorf("remaining: %d instances, %d claims, %d nodes\n%s", len(r.instances()), len(r.claims(t)), len(r.nodes(t)), r.log)
	}
	var pods corev1.PodList
	if err := r.api.List(t.Context(), &pods); err != nil || len(pods.Items) != 0 {
		t.Errorf("%d pods were not evicted, want none; %v", len(pods.Items), err)
	}
}
