// Package snapshot builds a cluster.Snapshot from the objects of Kubernetes, from scratch or by applying the changes of
// the informers to the previous state.
//
// In: objects from the informers' caches or from manifests; NodeClaims that were created and are not in the cache yet.
// Out: cluster.Snapshot; which pods block the disruption of a node, and which pods or budgets block a drain.
// Never: a write to the API server, or a decision.
package snapshot
