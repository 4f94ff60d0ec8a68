package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePool defines which nodes may be launched, how many, and how they may be disrupted.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodepools,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.nodes
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".spec.template.spec.nodeClassRef.name"
// +kubebuilder:printcolumn:name="Nodes",type="string",JSONPath=".status.nodes"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Weight",type="integer",priority=1,JSONPath=".spec.weight"
// +kubebuilder:printcolumn:name="CPU",type="string",priority=1,JSONPath=".status.resources.cpu"
// +kubebuilder:printcolumn:name="Memory",type="string",priority=1,JSONPath=".status.resources.memory"
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec NodePoolSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status NodePoolStatus `json:"status,omitempty,omitzero"`
}

// NodePoolSpec is the desired state of a NodePool.
//
// +kubebuilder:validation:XValidation:rule="has(self.replicas) == has(oldSelf.replicas)",message="replicas cannot be added to or removed from an existing NodePool; create another NodePool"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))",message="with replicas, limits must contain only 'nodes'"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.weight)",message="with replicas, weight must be left out"
type NodePoolSpec struct {
	// Template is the template of the NodePool's NodeClaims. A NodeClaim usually has more requirements than the template.
	Template NodeClaimTemplate `json:"template"`
	// Disruption defines when and how many nodes may be disrupted voluntarily.
	// +kubebuilder:default={consolidateAfter: "0s"}
	// +optional
	Disruption Disruption `json:"disruption"`
	// Limits is the upper limit of the sum of the capacity of the NodePool's nodes, per resource. "nodes" limits their count.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitzero"`
	// Weight orders NodePools: a pod is scheduled to the NodePool with the highest weight that accepts it. Omitted: 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// Replicas makes the NodePool static: it keeps this number of nodes, regardless of pods. Consolidation settings are
	// then ignored, limits may have only "nodes", and weight is forbidden. Alpha.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// NodeClaimTemplate is the template of a NodePool's NodeClaims.
type NodeClaimTemplate struct {
	// +optional
	ObjectMeta `json:"metadata,omitempty,omitzero"`
	// Spec is copied into each NodeClaim.
	Spec NodeClaimTemplateSpec `json:"spec"`
}

// ObjectMeta is the metadata that a NodePool copies to its NodeClaims and Nodes.
type ObjectMeta struct {
	// Labels of the NodeClaim and the Node. Under karpenter.sh, only karpenter.sh/capacity-type is allowed; under
	// karpenter.k8s.aws, only the well-known labels. kubernetes.io/hostname is rejected.
	// +kubebuilder:validation:MaxProperties=100
	// +mapType=atomic
	// +optional
	Labels map[string]string `json:"labels,omitzero"`
	// Annotations of the NodeClaim and the Node.
	// +mapType=granular
	// +optional
	Annotations map[string]string `json:"annotations,omitzero"`
}

// NodeClaimTemplateSpec is NodeClaimSpec without the fields that only a single NodeClaim has.
type NodeClaimTemplateSpec struct {
	// Taints are permanent taints of the node.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitzero"`
	// StartupTaints are on the node when it joins. The component that needs them, usually a DaemonSet, removes them.
	// Pods need not tolerate them for a node to be launched. The node is not initialized before they are removed.
	// +listType=atomic
	// +optional
	StartupTaints []corev1.Taint `json:"startupTaints,omitzero"`
	// Requirements restrict which nodes may be launched, together with the labels of the template. Never nil: an empty
	// list means no requirement.
	Requirements Requirements `json:"requirements" hash:"ignore"`
	// NodeClassRef names the EC2NodeClass with the settings of the instances. The name may change, group and kind may not.
	// +kubebuilder:validation:XValidation:rule="self.group == oldSelf.group",message="nodeClassRef.group cannot change; create another NodePool"
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",message="nodeClassRef.kind cannot change; create another NodePool"
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is the longest time from the deletion of a node until its pods are deleted forcibly,
	// regardless of PodDisruptionBudgets and do-not-disrupt annotations. Omitted: no limit. "0s": immediately.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	TerminationGracePeriod *Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which a node is replaced. "Never" disables expiration.
	// +kubebuilder:default="720h"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}

// Disruption defines when and how many nodes of a NodePool may be disrupted voluntarily.
type Disruption struct {
	// ConsolidateAfter is how long a node must be unchanged before it is consolidated: no pod was bound, and none left.
	// "Never" disables consolidation, of empty nodes too.
	ConsolidateAfter NillableDuration `json:"consolidateAfter"`
	// ConsolidationPolicy defines which nodes may be consolidated.
	// +kubebuilder:default="WhenEmptyOrUnderutilized"
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	// Budgets limit how many nodes of the NodePool may be disrupted at once. The lowest active budget applies. Omitted:
	// one budget of 10%. An empty list sets no limit.
	// +kubebuilder:default={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.schedule) == has(x.duration))",message="a budget needs both schedule and duration, or neither"
	// +listType=atomic
	// +optional
	Budgets []Budget `json:"budgets,omitzero" hash:"ignore"`
}

// ConsolidationPolicy defines which nodes may be consolidated.
//
// +kubebuilder:validation:Enum=WhenEmpty;WhenEmptyOrUnderutilized;Balanced
type ConsolidationPolicy string

// The consolidation policies.
const (
	// ConsolidateWhenEmpty allows only nodes that run no pods except those of DaemonSets.
	ConsolidateWhenEmpty ConsolidationPolicy = "WhenEmpty"
	// ConsolidateWhenEmptyOrUnderutilized also allows nodes whose pods fit on other nodes or on a cheaper one.
	ConsolidateWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	// ConsolidateBalanced allows underutilized nodes only if the saving is worth the disruption of their pods.
	ConsolidateBalanced ConsolidationPolicy = "Balanced"
)

// Budget limits how many nodes of a NodePool may be disrupted at once.
type Budget struct {
	// Reasons are the disruption reasons that the budget applies to. Omitted: all.
	// +kubebuilder:validation:MaxItems=50
	// +listType=set
	// +optional
	Reasons []DisruptionReason `json:"reasons,omitzero"`
	// Nodes is a count, or a percentage of the NodePool's nodes, rounded up.
	// +kubebuilder:default="10%"
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	Nodes string `json:"nodes" hash:"ignore"`
	// Schedule is a cron line in UTC, with five fields or as @hourly, @daily and so on: when the budget becomes active.
	// Omitted: it is always active.
	// +kubebuilder:validation:Pattern=`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`
	// +optional
	Schedule *string `json:"schedule,omitempty" hash:"ignore"`
	// Duration is how long the budget stays active after each time of Schedule, in hours and minutes.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`
	// +optional
	Duration *Duration `json:"duration,omitempty" hash:"ignore"`
}

// DisruptionReason is the reason of a voluntary disruption.
//
// +kubebuilder:validation:Enum=Underutilized;Empty;Drifted
type DisruptionReason string

// The reasons that a budget can name.
const (
	DisruptionUnderutilized DisruptionReason = "Underutilized"
	DisruptionEmpty         DisruptionReason = "Empty"
	DisruptionDrifted       DisruptionReason = "Drifted"
)

// NodePoolStatus is the observed state of a NodePool.
type NodePoolStatus struct {
	// Resources is the sum of the capacity of the NodePool's nodes.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Nodes is the number of the NodePool's nodes.
	// +kubebuilder:default=0
	// +optional
	Nodes int64 `json:"nodes"`
	// NodeClassObservedGeneration is the generation of the EC2NodeClass for which NodeRegistrationHealthy was last reset.
	// +optional
	NodeClassObservedGeneration int64 `json:"nodeClassObservedGeneration,omitempty"`
	// Conditions of the NodePool; see docs/reference/conditions.md.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodePoolList is a list of NodePools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the NodePools.
	Items []NodePool `json:"items"`
}

// StatusConditions returns the NodePool's conditions. Ready depends on ValidationSucceeded and NodeClassReady.
func (p *NodePool) StatusConditions() ConditionSet {
	return NewConditionSet(p, &p.Status.Conditions, ConditionValidationSucceeded, ConditionNodeClassReady)
}
