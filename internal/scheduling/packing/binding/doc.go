// Package binding simulates in which order kube-scheduler can bind the pods of a plan.
//
// In: the pods of a plan with their topology rules, domains and nodes.
// Out: whether any order works, and else the pods that no order binds.
// Never: a change of the plan, a resource, or a price.
package binding
