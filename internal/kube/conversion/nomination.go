package conversion

import corev1 "k8s.io/api/core/v1"

// TaintNominations keeps kube-scheduler from a new node until the pods that the node was launched for are nominated to
// it, so that no other pod takes their room. The controller sets the taint when it registers the Node, and removes it
// at most a second after the Node is ready.
const TaintNominations = "joiner.sh/awaiting-nominations"

// NominationsTaint returns the taint with its effect.
func NominationsTaint() corev1.Taint {
	return corev1.Taint{Key: TaintNominations, Effect: corev1.TaintEffectNoSchedule}
}
