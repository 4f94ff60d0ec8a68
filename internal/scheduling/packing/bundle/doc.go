// Package bundle combines pods that must share a node, or prefer to, into bundles, which are placed as one unit.
//
// In: pending pods with required or preferred host affinity, the free room of existing nodes, and the topology domains.
// Out: new classes of bundles in the queue. Pods of bundles that cannot be placed return to their classes.
// Never: a planned node, a price, or the choice of a node.
package bundle
