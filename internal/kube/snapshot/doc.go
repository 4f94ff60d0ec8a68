// Package snapshot builds the cluster at one instant from the objects of Kubernetes, at once or by increments.
//
// In: objects from the informers' caches or from manifests; claims that were created and are not in the cache yet.
// Out: cluster.Snapshot; which pods hold a node, and which pods or budgets block a drain.
// Never: a write to the API server, or a decision.
package snapshot
