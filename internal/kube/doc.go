// Package kube is the only door to Kubernetes: it turns API objects into the values that decisions are made from, and
// decisions into API objects.
//
// In: objects from the informers' caches or from manifests; plans and single steps to carry out.
// Out: cluster.Snapshot, NodeClaims, patches, evictions, events; errors sorted by what to do next.
// Never: a decision, a call to AWS, or a change to an object that somebody else holds.
package kube
