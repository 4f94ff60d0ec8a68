package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// TestForeignClaimsAreLeftAlone: a NodeClaim of another cloud provider's node class is not garbage-collected, and its
// empty node is not removed. The deletion of an EC2NodeClass with the same name does not wait for this NodeClaim.
func TestForeignClaimsAreLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	ref := &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	pool := testPool()
	pool.ObjectMeta = metav1.ObjectMeta{Name: "theirs"}
	pool.Spec.Template.Spec.NodeClassRef = ref
	r.create(t, pool)
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs-1", Labels: map[string]string{karpv1.LabelNodePool: "theirs"}},
		Spec:       karpv1.NodeClaimSpec{NodeClassRef: ref},
	}
	claim.Status.ProviderID, claim.Status.NodeName = "kwok://theirs-1", "theirs-1"
	hourAgo := r.now().Add(-time.Hour) // the sweeper skips young claims
	conditions := claim.StatusConditions()
	conditions.Start(hourAgo)
	for _, c := range []string{karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized} {
		conditions.SetTrue(hourAgo, c)
	}
	r.create(t, claim)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs-1", Labels: map[string]string{
			karpv1.LabelNodePool: "theirs", karpv1.LabelRegistered: "true", karpv1.LabelInitialized: "true",
		}},
		Spec: corev1.NodeSpec{ProviderID: "kwok://theirs-1"},
	}
	r.create(t, node)
	if err := r.Sweeper.Pass(t.Context(), r.now()); err != nil {
		t.Fatal(err)
	}
	if n := len(r.claims(t)); n != 1 {
		t.Fatalf("the sweeper deleted the foreign claim: %d claims are left", n)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := r.api.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	r.removeEmptyNodes(t)
	if n := len(r.claims(t)); n != 1 {
		t.Fatalf("the empty foreign node was removed: %d claims are left", n)
	}
	if err := r.api.Delete(t.Context(), r.class(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
		t.Fatal(err)
	}
	if event := r.events.find("WaitingOnNodeClaimTermination"); event != "" {
		t.Errorf("the deletion of the node class waits for the foreign claim: %s", event)
	}
}
