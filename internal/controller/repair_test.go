package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
)

// ail gives a Node a condition that has been unhealthy for the given time.
func (r *rig) ail(t *testing.T, name string, condition corev1.NodeConditionType, status corev1.ConditionStatus, since time.Duration) {
	t.Helper()
	for _, node := range r.nodes(t) {
		if node.Name != name {
			continue
		}
		c := corev1.NodeCondition{Type: condition, Status: status, LastTransitionTime: metav1.NewTime(r.now().Add(-since))}
		if condition == corev1.NodeReady {
			node.Status.Conditions = nil
		}
		node.Status.Conditions = append(node.Status.Conditions, c)
		if err := r.api.Status().Update(t.Context(), &node); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *rig) repairing() { r.Claims.Repair = &nodeclaim.Repair{Cache: r.api, Events: r.events} }

// TestNodeIsRepaired: a node that has been unhealthy for too long is replaced with all of its pods, even protected ones.
func TestNodeIsRepaired(t *testing.T) {
	t.Parallel()
	kept := resident("kept", "ReplicaSet", "")
	kept.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
	for name, c := range map[string]struct {
		condition corev1.NodeConditionType
		status    corev1.ConditionStatus
		after     time.Duration
	}{
		"kubelet stopped reporting": {corev1.NodeReady, corev1.ConditionUnknown, 30 * time.Minute},
		"GPU":                       {"AcceleratedHardwareReady", corev1.ConditionFalse, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			claim := r.servingNodes(t, "web")[0]
			pod := kept.DeepCopy()
			pod.Spec.NodeName, pod.Status.Phase = claim.Status.NodeName, corev1.PodRunning
			r.create(t, pod)
			r.ail(t, claim.Status.NodeName, c.condition, c.status, 0)
			r.ahead += c.after + time.Minute
			if r.visit(t, claim.Name); r.claim(t, claim.Name).DeletionTimestamp != nil {
				t.Fatal("a node was repaired although the gate is closed")
			}
			r.ahead -= 2 * time.Minute
			r.repairing()
			wait := r.visit(t, claim.Name)
			if r.claim(t, claim.Name).DeletionTimestamp != nil || wait <= 0 || wait > 2*time.Minute {
				t.Fatalf("it has time left, and is reconciled again in %s\n%s", wait, r.log)
			}
			r.ahead += wait
			r.visit(t, claim.Name)
			if got := r.claim(t, claim.Name); got.DeletionTimestamp == nil || got.Annotations[karpv1.AnnotationTerminationTimestamp] == "" {
				t.Fatalf("it is not repaired by force: %v\n%s", got.Annotations, r.log)
			}
			r.visits(t, claim.Name, 90)
			if r.claim(t, claim.Name) != nil || len(r.instances()) != 0 {
				t.Errorf("the node did not end\n%s", r.log)
			}
		})
	}
}

// TestRepairHasABreaker: if more than a fifth of a pool is unhealthy, no node is replaced, because new instances would
// not help.
func TestRepairHasABreaker(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claims := r.servingNodes(t, "a", "b", "c")
	r.repairing()
	r.ail(t, claims[0].Status.NodeName, corev1.NodeReady, corev1.ConditionUnknown, time.Hour)
	r.ail(t, claims[1].Status.NodeName, "KernelReady", corev1.ConditionFalse, 0) // not due for repair, but counted as unhealthy
	wait := r.visit(t, claims[0].Name)
	if r.claim(t, claims[0].Name).DeletionTimestamp != nil || wait <= 0 || wait > 5*time.Minute {
		t.Fatalf("two of three nodes are unhealthy and one is replaced, or is reconciled again in %s\n%s", wait, r.log)
	}
	for _, kind := range []string{"Node", "NodeClaim"} {
		if r.events.has(kind+"/NodeRepairBlocked", "2 of 3 nodes of NodePool apps") == "" {
			t.Errorf("the %s does not say why nothing happens", kind)
		}
	}
	for _, node := range r.nodes(t) {
		if node.Name == claims[1].Status.NodeName {
			node.Status.Conditions = node.Status.Conditions[:1]
			if err := r.api.Status().Update(t.Context(), &node); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.visit(t, claims[0].Name)
	if r.claim(t, claims[0].Name).DeletionTimestamp == nil {
		t.Errorf("one of three is unhealthy and stays\n%s", r.log)
	}
}
