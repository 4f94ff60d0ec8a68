// Package dualprice computes the lower bound and the dual prices of the pods of a plan.
//
// In: the offerings, the classes of pods, and demands: how many units of a class accept a set of offerings.
// Out: a lower bound of the price of any plan for the demands, and the dual price of a unit of each demand.
// Never: a planned node, or a choice of an offering.
//
// Package lowerbound solves the numeric problem. This package builds the problem: it selects the offerings that matter,
// and the host spreads that limit the pods on a node. It also computes what capacity reservations can save.
package dualprice
