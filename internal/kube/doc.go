// Package kube is the only client of the Kubernetes API: it converts API objects into values for decisions, and decisions into API
// objects.
//
// In: objects from the informers' caches or from manifests; plans and single steps to carry out.
// Out: cluster.Snapshot, NodeClaims, patches, evictions, events; errors classified by what the caller does next.
// Never: a decision, a call to AWS, or a change to an object that another component owns.
package kube
