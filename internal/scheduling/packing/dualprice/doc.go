// Package dualprice builds the input of lowerbound from the offerings and pods of a plan, and computes what capacity
// reservations can save.
//
// In: the offerings, the classes of pods, and demands: how many units of a class accept a set of offerings.
// Out: a lower bound of the price of any plan for the demands, and the dual price of a unit of each demand.
// Never: a planned node, or a choice of an offering.
//
// Package lowerbound solves the numeric problem. The input has only the offerings that matter, and the host spreads
// that limit the pods on a node. What capacity reservations can save is subtracted from the lower bound.
package dualprice
