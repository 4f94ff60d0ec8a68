package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
)

// TestEFA: an instance has one EFA interface on each network card if a pod requests EFA, and otherwise none.
func TestEFA(t *testing.T) {
	t.Parallel()
	for efa, want := range map[string]int{"": 0, "1": 4, "4": 4} { // a p4d.24xlarge has 4 cards
		r := newRig(t, "p4d.24xlarge")
		r.reconcileClassAndPool(t)
		podRequests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		if efa != "" {
			podRequests[awsv1.ResourceEFA] = resource.MustParse(efa)
		}
		r.create(t, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mpi"},
			Spec: corev1.PodSpec{
				Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
				Containers:  []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: podRequests, Limits: podRequests}}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			}}},
		})
		r.plan(t)
		r.reconcileClaims(t)
		launched := r.instances()
		if len(launched) != 1 {
			t.Fatalf("efa %q: launched %d instances, want 1\n%s", efa, len(launched), r.log)
		}
		devices := map[int64]int64{} // device index of the EFA interface, by network card
		for _, n := range launched[0].Interfaces {
			if n.Kind == "efa" {
				devices[n.Card] = n.Device
			}
		}
		// The interface of the first card has device index 0, those of other cards have 1.
		if len(devices) != want || want > 0 && (devices[0] != 0 || devices[1] != 1 || devices[3] != 1) {
			t.Errorf("efa %q: device indexes of EFA interfaces by card: %v, want %d, with the indexes 0, 1, 1, 1", efa, devices, want)
		}
		capacity := onlyClaim(t, r).Status.Capacity[awsv1.ResourceEFA]
		if capacity.Value() != int64(want) {
			t.Errorf("efa %q: the claim has capacity %s, want one for each interface", efa, capacity.String())
		}
	}
}
