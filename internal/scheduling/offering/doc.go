// Package offering numbers the offerings for the pods of a snapshot. For each offering, it computes which pods accept
// it, its room, and its alternatives.
//
// In: the NodePools, nodes and DaemonSets of a snapshot, the market, and what pods require of nodes.
// Out: a Stock: numbered offerings, their shapes, the remaining limits; sets of offerings that pods accept;
// alternatives of a planned node.
// Never: a pod, a count of pods, or the choice of an offering to launch.
//
// # Numbering
//
// An Offer is an offering of a NodePool: a Model with a zone and a capacity type. A Model is an instance type in a
// Variant of a NodePool. A Variant is a pool with one value for each custom label for which the pool allows several
// values. New numbers the offers of all pools together, so a set of offers is a bit set. An index by label finds the
// offers that a Signature accepts. Offers of a model have adjacent numbers, cheapest first.
//
// The Shape of an offer is the room of its node for pods, after the DaemonSet pods that would
// run there. The instances of a CapacityReservation are already paid for, and limited in number.
//
// # Acceptance
//
// Stages returns, for a class of pods, the sets of offers in the order to try them:
// each stage drops the lightest preference, or continues with pools of lower weight.
// Offers that are equal for all pods to be scheduled are one Lot, and only the
// cheapest offer of a lot is considered.
//
// A node planned as one offer may become any of the offer's Alternatives that
// the pods of the node accept. Choices keeps the alternatives that a NodeClaim can express.
package offering
