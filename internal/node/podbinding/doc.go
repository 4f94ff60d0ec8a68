// Package podbinding decides which pods are bound to a new Node before it opens for other pods.
//
// In: the Node, the pods that it was launched for, and where other pods run.
// Out: the pods to bind to the Node now, and those that wait for nodes of other zones.
// Never: a write, or a pod that the Node was not launched for.
package podbinding
