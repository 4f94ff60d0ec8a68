// Package v1 defines NodePool and NodeClaim, the kinds of the API group karpenter.sh/v1.
//
// In: manifests and API objects, as JSON.
// Out: Go values with the same fields, names and meaning as in Karpenter 1.14, and the well-known keys around them.
// Never: a call to an API server, a clock, or a decision about a node.
//
// The CRDs in api/crds are generated from this package; the markers on the fields are the schema. Names and pointers of
// the fields inside NodeClaimTemplate take part in the drift hash that Karpenter writes on nodes, so they may not be
// renamed at will.
//
// Optional lists and maps of a spec are omitted when nil, not when empty: no budgets is not the same as none given. Still,
// quantities and durations come back spelled anew (pods: 3 as "3", 1h as 1h0m0s), and the spec of a NodeClaim that a
// user wrote so must not change: write such objects with patches, not with updates.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1
