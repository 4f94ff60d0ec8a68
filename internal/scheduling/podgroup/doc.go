// Package podgroup groups the pods to schedule into classes of pods with equal requirements.
//
// In: the pods to schedule, and the required anti-affinity of the pods on nodes.
// Out: a Queue: the classes with their pods and requirements, and the pods that cannot be planned.
// Never: a node for a pod, an offering, or a result that depends on the order of its input.
//
// The Signature of a pod has its requirements and preferences for nodes, except free resources and host ports. The
// Profile of a pod (package topology) has its rules about other pods. Both are computed once for all pods that share
// them, so the time of all later steps depends on the number of classes, not of pods.
package podgroup
