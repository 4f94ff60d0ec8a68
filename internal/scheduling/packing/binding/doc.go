// Package binding simulates the order in which kube-scheduler can bind the pods of a plan.
//
// In: the pods of a plan with their topology rules, domains and nodes.
// Out: whether every order works; if not, the pods that remain unbound in the best order that was found.
// Never: a change of the plan, a check of resource requests, or a price.
package binding
