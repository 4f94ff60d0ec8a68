package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// TestTwoLiveNodesOfOneMachine: a kubelet on another machine says our machine's provider id. The Node that has the machine's
// address joins, and stays the claim's; the other one is nobody's, and not touched.
func TestTwoLiveNodesOfOneMachine(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.work(t)
	claim := r.claims(t)[0]
	for name, address := range map[string]string{"a-copy": "10.9.9.9", "genuine": r.instances()[0].PrivateIP} {
		node := nodeOf(claim, name)
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		r.create(t, node)
	}
	for range 3 {
		r.work(t)
	}
	if got := r.claim(t, claim.Name); got.Status.NodeName != "genuine" || !got.StatusConditions().IsReady() {
		t.Fatalf("the claim is of Node %q, %+v\n%s", got.Status.NodeName, got.Status.Conditions, r.log)
	}
	r.ahead += 20 * time.Minute
	r.work(t)
	for _, node := range r.nodes(t) {
		if isOurs := len(node.OwnerReferences) > 0; isOurs != (node.Name == "genuine") || node.DeletionTimestamp != nil {
			t.Errorf("Node %s is the claim's: %t, deleted %t", node.Name, isOurs, node.DeletionTimestamp != nil)
		}
	}
	if got := r.claim(t, claim.Name); got.DeletionTimestamp != nil {
		t.Errorf("the claim is given up\n%s", r.log)
	}
}

// TestTwoNodesThatCannotBeTold: where nothing says which Node is the machine's, none is taken, and the claim says so until its
// time to join is over.
func TestTwoNodesThatCannotBeTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.work(t)
	claim := r.claims(t)[0]
	r.create(t, nodeOf(claim, "one"))
	r.create(t, nodeOf(claim, "other"))
	r.work(t)
	got, _ := r.claim(t, claim.Name).StatusConditions().Find(karpv1.ConditionRegistered)
	if got.Status == "True" || got.Reason != "MultipleNodesFound" {
		t.Errorf("the claim says %+v\n%s", got, r.log)
	}
	r.ahead += 16 * time.Minute
	r.work(t)
	if r.claim(t, claim.Name).DeletionTimestamp == nil {
		t.Errorf("it waits for ever\n%s", r.log)
	}
}
