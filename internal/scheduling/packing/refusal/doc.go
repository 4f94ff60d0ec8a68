// Package refusal finds the causes why no node takes a pod, and the smallest change that would help.
//
// In: the offerings, the pods in classes, and a solution in which some classes found no place.
// Out: per class the causes, each with the number of offerings that it rules out, and a hint.
// Never: a change of the solution, a clock, randomness, or a call to anything.
//
// Each offering is checked step by step: NodePool, taints, labels, room, topology, capacity, limits
// and minValues. The hint is about the cause that let an offering get furthest.
package refusal
