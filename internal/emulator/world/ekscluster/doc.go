// Package ekscluster is the state of EKS in a region: clusters, access entries, add-ons, pod identity associations and
// Fargate profiles.
//
// In: calls of EKS as values, and the time.
// Out: clusters and their resources, and EKS's errors.
// Never: a control plane, an instance, a clock or a wire format.
package ekscluster
