package v1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NodeClaim asks for one node and follows it from its purchase to its end.
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

	// Spec is what is asked for. It never changes.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a NodeClaim cannot change; delete it and make another"
	Spec NodeClaimSpec `json:"spec"`
	// Status is what has been seen.
	// +optional
	Status NodeClaimStatus `json:"status,omitempty,omitzero"`
}

// NodeClaimSpec is the wish of a NodeClaim.
type NodeClaimSpec struct {
	// Taints that the node keeps.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitzero"`
	// StartupTaints are on the node when it joins and are expected to be removed soon by whoever asked for them,
	// usually a DaemonSet. The node is not initialized before they are gone.
	// +listType=atomic
	// +optional
	StartupTaints []corev1.Taint `json:"startupTaints,omitzero"`
	// Requirements narrow which node may be bought. Never nil: an empty list means no requirement.
	Requirements Requirements `json:"requirements" hash:"ignore"`
	// Resources is what the node must at least have for pods.
	// +optional
	Resources ResourceRequirements `json:"resources,omitempty,omitzero" hash:"ignore"`
	// NodeClassRef names the object with the settings of the cloud.
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is the longest that the node may take from its deletion until its pods are deleted by
	// force. Left out: as long as it takes. "0s": at once.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	TerminationGracePeriod *Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which the node is replaced.
	// +kubebuilder:default="720h"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}

// ResourceRequirements is what a node must have.
type ResourceRequirements struct {
	// Requests is the sum of what the pods that the claim was made for ask for, DaemonSets included.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitzero"`
}

// NodeClassReference names a node class, an object of the cloud's own API group.
type NodeClassReference struct {
	// Kind of the object, for instance EC2NodeClass.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="kind must be set, for instance EC2NodeClass"
	Kind string `json:"kind"`
	// Name of the object.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="name must be set"
	Name string `json:"name"`
	// Group of the object's API, without a version, for instance karpenter.k8s.aws.
	// +kubebuilder:validation:Pattern=`^[^/]*$`
	// +kubebuilder:validation:XValidation:rule="self != ''",message="group must be set, for instance karpenter.k8s.aws"
	Group string `json:"group"`
}

// GroupKind is the kind that the reference points at.
func (r NodeClassReference) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

// LabelKey is the label that NodeClaims and Nodes of this kind of node class carry, with the node class's name as its
// value; for instance karpenter.k8s.aws/ec2nodeclass.
func (r NodeClassReference) LabelKey() string {
	return r.Group + "/" + strings.ToLower(r.Kind)
}

// NodeClaimStatus is what has been seen of a NodeClaim and its node.
type NodeClaimStatus struct {
	// NodeName is the Node's name, once it has registered.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// ProviderID is the machine's id as Kubernetes writes it, for instance aws:///us-east-1a/i-0123456789abcdef0. It
	// is set once the machine is bought.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// ImageID is the image that the machine was started from.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Capacity is what the node is expected to have in all.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Allocatable is what the node is expected to have for pods.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Conditions of the claim; see ConditionReady and the NodeClaim conditions beside it.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// LastPodEventTime is when a pod was last bound to the node, or left it by ending or by being deleted.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitempty,omitzero"`
}

// NodeClaimList is a list of NodeClaims.
//
// +kubebuilder:object:root=true
type NodeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeClaim `json:"items"`
}

// StatusConditions is the view of the claim's conditions: Ready stands on Launched, Registered and Initialized.
func (c *NodeClaim) StatusConditions() ConditionSet {
	return NewConditionSet(c, &c.Status.Conditions, ConditionLaunched, ConditionRegistered, ConditionInitialized)
}
