// Package dualprice computes the lower bound and the dual prices of the pods of a plan.
//
// In: the offerings, the classes of pods, and demands: how many units of a class accept a set of offerings.
// Out: a price below which no plan for the demands can be, and the dual price of a unit of each.
// Never: a planned node, or a choice of an offering.
//
// Package lowerbound solves the problem as numbers. This package states it: which offerings matter, which
// host spreads limit the pods on a node, and what capacity reservations can save.
package dualprice
