// Package podgroup holds what the pods of a snapshot ask for, those that ask for the same as one.
//
// In: the pods that need a place, and whom the pods on nodes keep away.
// Out: a Queue: classes with a count, what they demand of nodes and of other pods, and whose demands nobody could mean.
// Never: a node to put a pod on, something to buy, or an answer that depends on the order of its input.
//
// What a pod demands of a node besides room is its Signature, what it asks of other
// pods its Profile (package topology). Both are worked out once for all pods that
// share them, so everything after that costs by class, not by pod.
package podgroup
