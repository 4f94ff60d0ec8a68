package conversion

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// TaintNominations reserves a new node for the pods that the node was launched for, until these pods are bound or
// nominated to the node. The controller sets the taint when it registers the Node, and removes it at most a second after
// the Node is ready. If pods wait for nodes of other zones, it then cordons the Node for up to ten seconds.
//
// While the controller has cordoned the Node, the taint has the effect PreferNoSchedule. It then only shows that the
// cordon is the controller's. DaemonSet pods tolerate a cordon, but not this taint.
const TaintNominations = "joiner.sh/awaiting-nominations"

// NominationsTaint returns the taint TaintNominations.
func NominationsTaint() corev1.Taint {
	return corev1.Taint{Key: TaintNominations, Effect: corev1.TaintEffectNoSchedule}
}

// CordonForPods replaces the taint TaintNominations by a cordon.
func CordonForPods(n *corev1.Node) {
	n.Spec.Taints = append(withoutTaint(n.Spec.Taints, TaintNominations),
		corev1.Taint{Key: TaintNominations, Effect: corev1.TaintEffectPreferNoSchedule})
	n.Spec.Unschedulable = true
}

// IsCordonedForPods reports whether the Node is cordoned by CordonForPods.
func IsCordonedForPods(n *corev1.Node) bool { return n.Spec.Unschedulable && hasCordonMark(n) }

// IsUncordoned reports whether a user has removed the cordon of CordonForPods, but not the taint.
func IsUncordoned(n *corev1.Node) bool { return !n.Spec.Unschedulable && hasCordonMark(n) }

func hasCordonMark(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == TaintNominations && t.Effect == corev1.TaintEffectPreferNoSchedule
	})
}

// Open removes the taint TaintNominations, and the cordon of CordonForPods.
func Open(n *corev1.Node) {
	if hasCordonMark(n) {
		n.Spec.Unschedulable = false
		n.Spec.Taints = withoutTaint(n.Spec.Taints, corev1.TaintNodeUnschedulable) // otherwise Kubernetes removes it later
	}
	n.Spec.Taints = withoutTaint(n.Spec.Taints, TaintNominations)
}

func withoutTaint(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}
