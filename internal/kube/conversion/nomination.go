package conversion

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// TaintNominations reserves a new node for the pods that the node was launched for, until these pods are bound or
// nominated to the node. The controller sets the taint when it registers the Node. At most a second after the Node is
// ready, it removes the taint, or it cordons the Node for up to ten seconds more and changes the effect to
// PreferNoSchedule, to show that the cordon is its own. If its watch is late, it opens the Node later.
const TaintNominations = "joiner.sh/awaiting-nominations"

// NominationsTaint returns the taint TaintNominations.
func NominationsTaint() corev1.Taint {
	return corev1.Taint{Key: TaintNominations, Effect: corev1.TaintEffectNoSchedule}
}

// CordonForPods cordons the Node, and changes the effect of TaintNominations to PreferNoSchedule, which marks the cordon as
// Joiner's. DaemonSet pods tolerate a cordon, but not the taint.
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

// OpenTaints returns the taints that the Node has when Joiner has opened it. They include a cordon that is not Joiner's.
func OpenTaints(n *corev1.Node) []requirements.Taint {
	open := &corev1.Node{Spec: corev1.NodeSpec{Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable}}
	Open(open)
	taints := Taints(open.Spec.Taints)
	if cordon := cluster.CordonTaint(); open.Spec.Unschedulable && !slices.Contains(taints, cordon) {
		taints = append(taints, cordon)
	}
	return taints
}

func withoutTaint(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}
