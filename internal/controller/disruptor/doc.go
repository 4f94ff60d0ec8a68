// Package disruptor removes and replaces nodes: empty nodes, consolidation, drift and static pools. It searches for
// moves, starts them within the disruption budgets, and completes or aborts each one.
//
// In: NodeClaims, Nodes and pods, offerings and prices, the disruption budgets.
// Out: replacement NodeClaims, drains, deletions.
// Never: disruption that a budget does not allow.
package disruptor
