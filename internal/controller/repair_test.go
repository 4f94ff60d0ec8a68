package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// makeUnhealthy sets the condition of a Node to the status. The last transition was ago before now.
func (r *rig) makeUnhealthy(t *testing.T, name string, condition corev1.NodeConditionType, status corev1.ConditionStatus,
	ago time.Duration) {
	t.Helper()
	for _, node := range r.nodes(t) {
		if node.Name != name {
			continue
		}
		c := corev1.NodeCondition{Type: condition, Status: status, LastTransitionTime: metav1.NewTime(r.now().Add(-ago))}
		if condition == corev1.NodeReady {
			node.Status.Conditions = nil // it has only the condition Ready
		}
		node.Status.Conditions = append(node.Status.Conditions, c)
		if err := r.api.Status().Update(t.Context(), &node); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *rig) enableRepair() { r.Claims.Repair = &nodeclaim.Repair{Cache: r.api, Events: r.events} }

// TestNodeIsRepaired: with the feature gate NodeRepair, a node that has been unhealthy for too long is terminated by
// force, even if a pod has the annotation do-not-disrupt.
func TestNodeIsRepaired(t *testing.T) {
	t.Parallel()
	protected := resident("protected", "ReplicaSet", "")
	protected.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
	for name, c := range map[string]struct {
		condition corev1.NodeConditionType
		status    corev1.ConditionStatus
		after     time.Duration // how long a node may be unhealthy
	}{
		"kubelet stopped reporting": {corev1.NodeReady, corev1.ConditionUnknown, 30 * time.Minute},
		"GPU":                       {"AcceleratedHardwareReady", corev1.ConditionFalse, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			claim := r.createServing(t, "web")[0]
			pod := protected.DeepCopy()
			pod.Spec.NodeName, pod.Status.Phase = claim.Status.NodeName, corev1.PodRunning
			r.create(t, pod)
			r.makeUnhealthy(t, claim.Status.NodeName, c.condition, c.status, 0)
			r.ahead += c.after + time.Minute
			if r.reconcileClaim(t, claim.Name); r.claim(t, claim.Name).DeletionTimestamp != nil {
				t.Fatal("the node is repaired without the feature gate")
			}
			r.ahead -= 2 * time.Minute // to one minute before the repair is due
			r.enableRepair()
			wait := r.reconcileClaim(t, claim.Name)
			if r.claim(t, claim.Name).DeletionTimestamp != nil || wait <= 0 || wait > 2*time.Minute {
				t.Fatalf("the node is repaired a minute early, or its claim is reconciled again in %s\n%s", wait, r.log)
			}
			r.ahead += wait
			r.reconcileClaim(t, claim.Name)
			if got := r.claim(t, claim.Name); got.DeletionTimestamp == nil || got.Annotations[karpv1.AnnotationTerminationTimestamp] == "" {
				t.Fatalf("the claim is not deleted by force: annotations %v\n%s", got.Annotations, r.log)
			}
			r.reconcileEachSecond(t, claim.Name, 90)
			if r.claim(t, claim.Name) != nil || len(r.instances()) != 0 {
				t.Errorf("the claim or the instance is still there\n%s", r.log)
			}
		})
	}
}

// TestRepairHasABreaker: if more than a fifth of the nodes of a pool, rounded up, are unhealthy (two of three), no node
// is replaced, because new instances would not help. If only one of three is unhealthy, it is replaced.
func TestRepairHasABreaker(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claims := r.createServing(t, "a", "b", "c")
	r.enableRepair()
	r.makeUnhealthy(t, claims[0].Status.NodeName, corev1.NodeReady, corev1.ConditionUnknown, time.Hour)
	r.makeUnhealthy(t, claims[1].Status.NodeName, "KernelReady", corev1.ConditionFalse, 0) // not due for repair, but counted as unhealthy
	wait := r.reconcileClaim(t, claims[0].Name)
	if r.claim(t, claims[0].Name).DeletionTimestamp != nil || wait <= 0 || wait > lifecycle.RepairRetry {
		t.Fatalf("a node is replaced although two of three are unhealthy, or its claim is reconciled again in %s\n%s", wait, r.log)
	}
	for _, kind := range []string{"Node", "NodeClaim"} {
		if r.events.find(kind+"/NodeRepairBlocked", "2 of 3 nodes of NodePool apps") == "" {
			t.Errorf("no event on the %s says why no node is replaced", kind)
		}
	}
	for _, node := range r.nodes(t) {
		if node.Name == claims[1].Status.NodeName {
			node.Status.Conditions = node.Status.Conditions[:1] // without KernelReady
			if err := r.api.Status().Update(t.Context(), &node); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.reconcileClaim(t, claims[0].Name)
	if r.claim(t, claims[0].Name).DeletionTimestamp == nil {
		t.Errorf("one of three nodes is unhealthy, and is not replaced\n%s", r.log)
	}
}
