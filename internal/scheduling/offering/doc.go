// Package offering numbers the offerings for the pods of a snapshot: which pods accept each, its room, and its alternatives.
//
// In: the NodePools, nodes and DaemonSets of a snapshot, the market, and what pods require of nodes.
// Out: a Stock: numbered offerings, their shapes and budgets; sets of offerings that pods accept; the alternatives of a planned node.
// Never: a pod, a count of pods, or the decision what to launch.
//
// # Numbering
//
// An Offer is a Model, that is an instance type in a Variant of a NodePool, with a zone and a capacity type.
// A variant is a pool with one value for each custom label of which it leaves
// several. Offers of all pools have one numbering (New), so that a set of them is
// a bit set, and what a Signature accepts is found through an index of labels.
// Offers of a model lie side by side, the cheapest first.
//
// The Shape of an offer is the room that its node leaves for pods, less the DaemonSet pods that would
// run on it. A CapacityReservation is a capacity reservation: its instances are paid for already, and limited in number.
//
// # Acceptance
//
// Stages returns, for a class of pods, the sets of offers to try one after the other:
// it drops preferences, the lightest first, and moves on to pools of lower weight.
// Offers that are equal for all pods to be scheduled are one Lot, of which only the
// cheapest is considered.
//
// A node planned as one offer may become any of its Alternatives that
// its pods accept. Choices keeps the alternatives that a NodeClaim can express.
package offering
