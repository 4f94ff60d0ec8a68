// Package offering numbers the offerings for the pods of a snapshot: which pods accept each, its room, and its alternatives.
//
// In: the NodePools, nodes and DaemonSets of a snapshot, the market, and what pods require of nodes.
// Out: a Stock: numbered offerings, their shapes and budgets; sets of offerings that pods accept; the alternatives of a planned node.
// Never: a pod, a count of pods, or the decision what to launch.
//
// # How it is numbered
//
// An Offer is a Model, that is an instance type in a Variant of a NodePool, with a zone and a capacity type.
// A variant is a pool with one value for each custom label of which it leaves
// several. Offers of all pools have one numbering (New), so that a set of them is
// a bit set, and what a Signature accepts is found through an index of labels.
// Offers of a model lie side by side, the cheapest first.
//
// What a machine leaves for pods, exact by the DaemonSets that would run on it, is
// its Shape. A capacity reservation is a Reserve: its instances are paid for and few.
//
// # What pods accept
//
// Accept gives a signature the sets of offers to try one after the other, as
// preferences are given up, softest first, and as pools of lower weight are turned
// to (Stages). Offers that make no difference to those who are to be bought for are
// one Lot; its cheapest stands for all.
//
// A machine that was planned as one offer may become any of its Alternatives that
// its pods accept. Choices keeps of them what a NodeClaim can express.
package offering
