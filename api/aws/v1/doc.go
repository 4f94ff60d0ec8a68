// Package v1 defines EC2NodeClass, the kind of the API group karpenter.k8s.aws/v1.
//
// In: manifests and API objects, as JSON.
// Out: Go values with the fields, names and meaning of the AWS provider of Karpenter 1.14.1, and the keys around them.
// Never: a call to an API server or to AWS, a clock, or a decision about an instance.
//
// The CRD in api/crds is generated from this package; the markers on the fields are the schema. Names and pointers of the
// fields of EC2NodeClassSpec take part in the drift hash that Karpenter writes on nodes, so they may not be renamed at
// will. One type differs: the values of KubeletConfiguration.EvictionSoftGracePeriod are texts here and metav1.Duration
// there, because the schema takes any text, and one that is no duration must not keep all node classes from being read.
// One field is newer: KubeletConfiguration.More, for Karpenter's next version takes every setting of the kubelet.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1
