package conversion

import corev1 "k8s.io/api/core/v1"

// TaintNominations reserves a new node for the pods that the node was launched for, until these pods are nominated to
// the node. The controller sets the taint when it registers the Node, and removes the taint at most a second after the
// Node is ready.
const TaintNominations = "joiner.sh/awaiting-nominations"

// NominationsTaint returns the taint TaintNominations.
func NominationsTaint() corev1.Taint {
	return corev1.Taint{Key: TaintNominations, Effect: corev1.TaintEffectNoSchedule}
}
