// Package podgroup groups the pods to schedule into classes of pods with equal requirements.
//
// In: the pods to schedule, and the required anti-affinity of the pods on nodes.
// Out: a Queue: the classes with their pods, what they require of nodes and of other pods, and the pods that cannot be planned.
// Never: a node for a pod, an offering, or a result that depends on the order of its input.
//
// The Signature of a pod has its requirements of a node, except room. Its Profile
// (package topology) has its rules about other pods. Both are computed once for all pods
// that share them, so the time of all later steps depends on the number of classes, not of pods.
package podgroup
