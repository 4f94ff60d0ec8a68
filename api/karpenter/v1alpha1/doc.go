// Package v1alpha1 defines NodeOverlay, the kind of the API group karpenter.sh/v1alpha1.
//
// In: manifests and API objects, as JSON.
// Out: Go values with the same fields, names and meaning as in Karpenter 1.14.
// Never: a call to an API server, a clock, or the application of an overlay to an offering.
//
// The CRD in api/crds is generated from this package; the markers on the fields are the schema.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha1
