// Package v1 defines EC2NodeClass, the kind of the API group karpenter.k8s.aws/v1.
//
// In: manifests and API objects, as JSON.
// Out: Go values with the fields, names and meaning of the AWS provider of Karpenter 1.14.1, and its labels, annotations and tags.
// Never: a call to an API server or to AWS, a clock, or a decision about an instance.
//
// The CRD in api/crds is generated from this package; the markers on the fields are the schema. The drift hash that
// Karpenter writes on nodes depends on the names of the fields of EC2NodeClassSpec, and on which of them are pointers.
// Renaming a field makes nodes drift.
//
// Two fields differ from Karpenter 1.14.1. The values of KubeletConfiguration.EvictionSoftGracePeriod are strings here
// and metav1.Duration in Karpenter. The schema accepts any string, and one string that is not a duration would make it
// impossible to list the EC2NodeClasses. KubeletConfiguration.More does not exist in Karpenter 1.14.1; Karpenter's next
// version accepts every setting of the kubelet.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1
