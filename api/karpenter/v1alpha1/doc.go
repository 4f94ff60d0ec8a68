// Package v1alpha1 holds the kinds of the API group karpenter.sh/v1alpha1 that Joiner reads: NodeOverlay.
//
// In: manifests and API objects, as JSON.
// Out: Go values with the same fields, names and meaning as in Karpenter 1.14.
// Never: talks to an API server, reads a clock, or says what an overlay does to a price.
//
// The CRD in api/crds is generated from this package; the markers on the fields are the schema.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha1
