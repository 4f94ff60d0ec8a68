// Package existing holds the free room of existing nodes, and the topology domains with the pods in them.
//
// In: the nodes of a snapshot, the offerings, and the pods to place.
// Out: Rooms: the free room of each node, and the pods that accept it; TopologyState: the domains that exist and
// count, with their pods.
// Never: a planned node, or the choice of a node for a pod.
//
// A plan changes only its own copies (Clone, Fork): the room of nodes as pods are placed, the counts of domains as
// pods are assigned.
package existing
