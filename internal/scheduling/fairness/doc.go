// Package fairness decides which pods are planned together, so that the pods of one namespace do not delay those of others.
//
// In: the pods that need a place, with what they cost the solver, and which of them had their turn.
// Out: a Division: the pods of the next plan, and of those whose rules cost more than their share the next slice.
// Never: a place for a pod, a clock, or an answer that depends on the order of its input.
package fairness
