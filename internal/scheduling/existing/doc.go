// Package existing holds what a plan stands on: the nodes that are there, and the
// domains of labels, with the pods that are in them.
//
// In: the nodes of a snapshot, the offers that could be bought, and the pods that need a place.
// Out: Rooms: what is left of each and who accepts it; Ground: which domains there are and count, and who is there.
// Never: a machine that is bought, or the decision where a pod goes.
//
// A plan alters its own copies (Clone, Fork): the room of nodes as they fill, the
// census as pods are sent to domains.
package existing
