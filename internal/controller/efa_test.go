package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
)

// TestEFA: an instance has EFA interfaces, one on each network card, if a pod requests one, and otherwise none.
func TestEFA(t *testing.T) {
	t.Parallel()
	for efa, want := range map[string]int{"": 0, "1": 4, "4": 4} { // a p4d.24xlarge has 4 cards
		r := newRig(t, "p4d.24xlarge")
		r.classes(t)
		asks := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		if efa != "" {
			asks[awsv1.ResourceEFA] = resource.MustParse(efa)
		}
		r.create(t, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mpi"},
			Spec: corev1.PodSpec{
				Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
				Containers:  []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			}}},
		})
		r.plan(t)
		r.work(t)
		bought := r.instances()
		if len(bought) != 1 {
			t.Fatalf("efa %q: launched %d instances\n%s", efa, len(bought), r.log)
		}
		have := map[int64]int64{} // card → device
		for _, n := range bought[0].Interfaces {
			if n.Kind == "efa" {
				have[n.Card] = n.Device
			}
		}
		if len(have) != want || want > 0 && (have[0] != 0 || have[1] != 1 || have[3] != 1) {
			t.Errorf("efa %q: EFA interfaces by card %v, want %d", efa, have, want)
		}
		capacity := findClaim(t, r).Status.Capacity[awsv1.ResourceEFA]
		if capacity.Value() != int64(want) {
			t.Errorf("efa %q: capacity of the claim: %s", efa, capacity.String())
		}
	}
}
