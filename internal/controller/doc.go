// Package controller wires the control loops, which are in its sub-packages. Each loop reads, decides, acts and
// reports, in this order.
//
// In: the clients of Kubernetes and AWS, the settings, the clock.
// Out: NodeClaims, instances, statuses, events, logs, metrics.
// Never: decision rules. Decisions are made by packages that have no clients.
package controller
