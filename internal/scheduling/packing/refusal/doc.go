// Package refusal finds the causes why no node takes a pod, and the smallest change that would help.
//
// In: the offerings, the pods in classes, and a solution in which some classes have unplaced pods.
// Out: per class the causes, each with the number of offerings that it rules out, and a hint.
// Never: a change of the solution, a clock, randomness, or I/O.
//
// Each offering is checked step by step: NodePool, taints, labels, room, topology, capacity, limits
// and minValues. The hint refers to the cause of the offering that passed the most checks.
package refusal
