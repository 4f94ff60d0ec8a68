// Package existing holds the free room of existing nodes, and the topology domains with the pods in them.
//
// In: the nodes of a snapshot, the offerings, and the pods to place.
// Out: Rooms: the free room of each node, and the pods that accept it; TopologyState: the domains of each label, and
// the numbers of pods in them.
// Never: a planned node, or the choice of a node for a pod.
//
// A plan changes only its own copies: the rooms (Rooms.Clone) when it places pods, and the domain counts
// (TopologyState.Fork) when it assigns pods to domains.
package existing
