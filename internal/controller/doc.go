// Package controller has the reconcile loops. Each loop reads, decides, acts and reports, in this order.
//
// In: the clients of Kubernetes and AWS, the settings, the clock.
// Out: NodeClaims, instances, statuses, events, logs, metrics.
// Never: a rule of its own. Decisions are made by packages that have no clients.
package controller
