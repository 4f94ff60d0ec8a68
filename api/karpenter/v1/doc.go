// Package v1 defines NodePool and NodeClaim, the kinds of the API group karpenter.sh/v1.
//
// In: manifests and API objects, as JSON.
// Out: Go values with the same fields, names and meaning as in Karpenter 1.14, and the well-known labels, annotations and taints.
// Never: a call to an API server, a clock, or a decision about a node.
//
// The CRDs in api/crds are generated from this package; the markers on the fields are the schema. The drift hash that
// Karpenter writes on nodes depends on the names of the fields inside NodeClaimTemplate, and on which of them are
// pointers. Renaming a field makes nodes drift.
//
// The JSON omits optional lists and maps of a spec when they are nil, not when they are empty: an empty list of budgets
// differs from an omitted one. Encoding can change the spelling of quantities and durations (pods: 3 becomes "3", 1h
// becomes 1h0m0s). The spec of a NodeClaim is immutable, so an update with another spelling is rejected: write these
// objects with patches, not with updates.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1
