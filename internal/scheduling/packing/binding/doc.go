// Package binding simulates the order in which kube-scheduler can bind the pods of a plan.
//
// In: the pods of a plan with their topology rules, domains and nodes.
// Out: whether every order works; if not, the pods that the best order found does not bind.
// Never: a change of the plan, a resource, or a price.
package binding
