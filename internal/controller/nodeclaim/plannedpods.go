package nodeclaim

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// plannedPods returns the pods that are planned for the claim and that still exist.
func (c *Reconciler) plannedPods(ctx context.Context, claim *karpv1.NodeClaim) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, id := range conversion.PodsOf(claim) {
		namespace, name, _ := strings.Cut(id, "/")
		pod := &corev1.Pod{}
		if err := c.Cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, pod); err != nil {
			continue // the pod is gone
		}
		if pod.CreationTimestamp.After(claim.CreationTimestamp.Time) {
			continue // another pod with the same name
		}
		pods = append(pods, pod)
	}
	return pods
}

// expectPods records that the registered Node was launched for its planned pods. It counts the pods that were bound
// since the claim was created, by whether they were bound to this Node.
func (c *Reconciler) expectPods(ctx context.Context, claim *karpv1.NodeClaim) {
	if c.Pods == nil {
		return
	}
	for _, pod := range c.plannedPods(ctx, claim) {
		switch {
		case pod.Spec.NodeName == "":
			c.Pods.Expect(pod.UID, claim.Status.NodeName)
		case boundAfter(pod, claim):
			c.Pods.CountPlanned(pod.Spec.NodeName == claim.Status.NodeName)
		}
	}
}

// boundAfter reports whether the pod was bound after the claim was created. The pods of a move were bound to their old
// node before that.
func boundAfter(pod *corev1.Pod, claim *karpv1.NodeClaim) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.LastTransitionTime.After(claim.CreationTimestamp.Time)
		}
	}
	return false
}
