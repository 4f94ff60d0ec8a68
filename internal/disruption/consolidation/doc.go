// Package consolidation finds the nodes whose removal saves money.
//
// In: a snapshot of the cluster, the market, and the nodes that may be removed, with their prices and the cost of
// moving their pods.
// Out: moves: nodes to remove together, the nodes to launch in their place, the new nodes of their pods, and the
// saving.
// Never: a clock, an API object, or a change to the cluster: the caller revalidates a move against newer state before
// it acts.
//
// # Terms
//
// A candidate is a node that may be removed. An attempt is a plan (packing.Solve) for the snapshot without some of the
// candidates. An attempt splits into independent moves. The worth of a move is s/c. s is its saving, as a share of the
// price of all candidates. c is its cost, as a share of the cost of moving the pods of all candidates. A move is worth
// it if its worth is at least a threshold (evaluate). The waste of a candidate is the part of its price that the
// removal of all candidates would save (byWaste).
//
// # Find
//
// Find runs the numbered list of strategies in find.go; each strategy is in the file of its name. The first strategy
// that finds moves decides the result. Find first requires three times the worth of removing all candidates, because
// moving pods for a small saving can prevent a larger saving. If no move meets this threshold, Find continues with the
// lowest threshold. With high churn, the lowest threshold is three times as high.
//
// Capacity is scarce if the free room is small compared to the possible saving (isScarce). If capacity is scarce, Find
// makes no moves while existing nodes are about to take pods of terminating nodes (existingNodesAwaitPods). Strategies
// 1, 3, 4 and 5 need a cluster without pods in transit (isSettled), because they assume that pods arrive in the order
// in which package drain evicts them.
//
// A plan is not enough for a move. kube-scheduler does not know the plan, so a simulation of its scoring must find a
// node for each moved pod. It simulates the moves one after the other, and all moves of the result at once
// (bestTogether). A move that would replace a node with an equivalent one keeps the node (keepEquivalentNodes). If
// moves of a plan are left out, package verify, which checks the rules of Kubernetes, must accept the plan of the
// remaining moves (verifyMoves, verifiedPrefix).
//
// # Revalidate and Replace
//
// Revalidate repeats the search for the nodes of one move. Replace removes nodes at any price, one after the other
// (sequence): each plan takes the effects of the previous plans into account, but uses none of the nodes that these
// plans launch. So no move depends on another.
package consolidation
