// Package disruptor removes and replaces nodes: empty nodes, consolidation, drift and static pools. It searches for moves,
// starts them within the disruption budgets, and completes or aborts each one.
//
// In: the fleet, the catalog, the disruption budgets.
// Out: replacement NodeClaims, drains, deletions.
// Never: a change that a budget does not allow.
package disruptor
