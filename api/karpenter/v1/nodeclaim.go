package v1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NodeClaim requests one node and tracks it from the launch of its instance to its termination.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeclaims,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".metadata.labels.node\\.kubernetes\\.io/instance-type"
// +kubebuilder:printcolumn:name="Capacity",type="string",JSONPath=".metadata.labels.karpenter\\.sh/capacity-type"
// +kubebuilder:printcolumn:name="Zone",type="string",JSONPath=".metadata.labels.topology\\.kubernetes\\.io/zone"
// +kubebuilder:printcolumn:name="Node",type="string",JSONPath=".status.nodeName"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="ImageID",type="string",priority=1,JSONPath=".status.imageID"
// +kubebuilder:printcolumn:name="ID",type="string",priority=1,JSONPath=".status.providerID"
// +kubebuilder:printcolumn:name="NodePool",type="string",priority=1,JSONPath=".metadata.labels.karpenter\\.sh/nodepool"
// +kubebuilder:printcolumn:name="NodeClass",type="string",priority=1,JSONPath=".spec.nodeClassRef.name"
// +kubebuilder:printcolumn:name="Drifted",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Drifted\")].status"
type NodeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the requested node. It is immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a NodeClaim cannot change; delete the NodeClaim and create another one"
	Spec NodeClaimSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status NodeClaimStatus `json:"status,omitempty,omitzero"`
}

// NodeClaimSpec is the desired state of a NodeClaim.
type NodeClaimSpec struct {
	// Taints are permanent taints of the node.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitzero"`
	// StartupTaints are on the node when it joins. The component that needs them, usually a DaemonSet, removes them.
	// The node is not initialized before they are removed.
	// +listType=atomic
	// +optional
	StartupTaints []corev1.Taint `json:"startupTaints,omitzero"`
	// Requirements restrict which instance may be launched. Never nil: an empty list means no requirement.
	Requirements Requirements `json:"requirements" hash:"ignore"`
	// Resources is the minimum that the node must offer to pods.
	// +optional
	Resources ResourceRequirements `json:"resources,omitempty,omitzero" hash:"ignore"`
	// NodeClassRef names the EC2NodeClass with the settings of the instance.
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is the longest time from the deletion of the node until its pods are deleted
	// forcibly. Omitted: no limit. "0s": immediately.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	TerminationGracePeriod *Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which the node is replaced. "Never" disables expiration.
	// +kubebuilder:default="720h"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}

// ResourceRequirements are the resources that a node must offer.
type ResourceRequirements struct {
	// Requests is the sum of the requests of the pods that the NodeClaim was created for, DaemonSet pods included.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitzero"`
}

// NodeClassReference names a node class, an object of the cloud's own API group.
type NodeClassReference struct {
	// Kind of the object, for example EC2NodeClass.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="kind must be set, for example EC2NodeClass"
	Kind string `json:"kind"`
	// Name of the object.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="name must be set"
	Name string `json:"name"`
	// Group of the object's API, without a version, for example karpenter.k8s.aws.
	// +kubebuilder:validation:Pattern=`^[^/]*$`
	// +kubebuilder:validation:XValidation:rule="self != ''",message="group must be set, for example karpenter.k8s.aws"
	Group string `json:"group"`
}

// GroupKind returns the API group and kind of the referenced node class.
func (r NodeClassReference) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

// LabelKey returns the label of NodeClaims and Nodes whose value is the name of the node class, for example
// karpenter.k8s.aws/ec2nodeclass.
func (r NodeClassReference) LabelKey() string {
	return r.Group + "/" + strings.ToLower(r.Kind)
}

// NodeClaimStatus is the observed state of a NodeClaim and its node.
type NodeClaimStatus struct {
	// NodeName is the Node's name, once it has registered.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// ProviderID is the ID of the instance in Kubernetes' form, for example aws:///us-east-1a/i-0123456789abcdef0. It
	// is set once the instance is launched.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// ImageID is the AMI of the instance.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Capacity is the expected total of the node's resources.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Allocatable is the expected amount of the node's resources for pods.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Conditions of the NodeClaim; see docs/reference/conditions.md.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// LastPodEventTime is when a pod was last bound to the node, ended there, or was deleted from it.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitempty,omitzero"`
}

// NodeClaimList is a list of NodeClaims.
//
// +kubebuilder:object:root=true
type NodeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the NodeClaims.
	Items []NodeClaim `json:"items"`
}

// StatusConditions returns the NodeClaim's conditions. Ready depends on Launched, Registered and Initialized.
func (c *NodeClaim) StatusConditions() ConditionSet {
	return NewConditionSet(c, &c.Status.Conditions, ConditionLaunched, ConditionRegistered, ConditionInitialized)
}
