// Package controller is the loops: each reads, decides, acts and tells, in this order.
//
// In: the doors to Kubernetes and AWS, the settings, the clock.
// Out: NodeClaims, instances, statuses, events, logs, metrics.
// Never: a rule of its own. What to do is decided by the packages that know no doors.
package controller
