// Package consolidation finds the nodes whose removal saves money.
//
// In: a snapshot of the cluster, the market, and the nodes that may be removed, with their prices and the cost of moving
// their pods.
// Out: moves: nodes to remove together, the nodes to launch in their place, the new nodes of their pods, and the saving.
// Never: a clock, an API object; the caller revalidates a move against newer state before it acts.
//
// # Terms
//
// A candidate is a node that may be removed. An attempt is a plan (packing.Solve) for the snapshot without some of the
// candidates. It splits into independent moves. A move is worth it if its share of the price of all candidates is at
// least a threshold times its share of the cost of moving all their pods (evaluate).
//
// # Find
//
// Find runs the numbered list of strategies in find.go, each in the file of its name. The first that finds moves
// decides the result. It starts with a threshold of three times the worth of removing all candidates, because pods that
// are moved for a small saving stand in the way of a larger one. The lowest threshold follows if no move meets the
// first. With high churn, all thresholds are three times as high.
//
// If capacity is scarce, Find waits while pods are in transit to existing nodes. Most strategies after the second need
// a cluster without pods in transit, because they assume that pods arrive in the order in which package drain evicts
// them.
//
// A plan is not enough for a move. kube-scheduler does not know the plan, so a simulation of its scoring must find a
// node for each moved pod. It does so for each move, and for all moves of the result at once (bestTogether). A move
// that would replace a node with an equivalent one keeps the node (keepEquivalentNodes). verify must accept the
// remaining moves without the moves that were left out (verifyMoves, verified).
//
// # Revalidate and Replace
//
// Revalidate repeats the search for the nodes of one move. Replace removes nodes at any price, one after the other
// (sequence): each plan is based on the previous plans, and uses none of the nodes that they launch. So no move depends
// on another.
package consolidation
