// Package fairness decides which pending pods are planned together, so that the pods of one namespace do not delay
// the pods of other namespaces.
//
// In: the pods to schedule, what each pod costs the solver, and which pods were already served.
// Out: a Division: the pods of the next plan, and the next slice of the pods that cost more than their share.
// Never: an assignment of a pod to a node, a clock, or a result that depends on the order of its input.
package fairness
