package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePool says which nodes may be bought, in which amounts, and how they may be taken away again.
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

	// Spec is what the user asks for.
	Spec NodePoolSpec `json:"spec"`
	// Status is what has been seen.
	// +optional
	Status NodePoolStatus `json:"status,omitempty,omitzero"`
}

// NodePoolSpec is the wish of a NodePool.
//
// +kubebuilder:validation:XValidation:rule="has(self.replicas) == has(oldSelf.replicas)",message="replicas can be neither added to nor taken from a NodePool that exists; make another NodePool"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))",message="with replicas, limits may hold only 'nodes'"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.weight)",message="with replicas, weight must be left out"
type NodePoolSpec struct {
	// Template is the pattern of this pool's NodeClaims. A claim made from it is usually narrower than the pattern.
	Template NodeClaimTemplate `json:"template"`
	// Disruption says when and how many nodes may be taken away by choice.
	// +kubebuilder:default={consolidateAfter: "0s"}
	// +optional
	Disruption Disruption `json:"disruption"`
	// Limits bounds the sum of the capacity of this pool's nodes, per resource; the name "nodes" bounds their count.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitzero"`
	// Weight orders pools: a pod goes to the heaviest pool that can take it. Left out, it counts as 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// Replicas makes the pool static: it keeps this number of nodes and does not follow pods. Then consolidation
	// settings are ignored, limits may hold only "nodes", and weight is forbidden. Alpha.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// NodeClaimTemplate is the pattern that NodeClaims are made from.
type NodeClaimTemplate struct {
	// +optional
	ObjectMeta `json:"metadata,omitempty,omitzero"`
	// Spec is copied into each NodeClaim.
	Spec NodeClaimTemplateSpec `json:"spec"`
}

// ObjectMeta is the part of an object's metadata that a NodePool passes on to its NodeClaims and Nodes.
type ObjectMeta struct {
	// Labels of the NodeClaim and the Node. Keys under karpenter.sh, and under karpenter.k8s.aws except the well-known
	// ones, are refused, and so is kubernetes.io/hostname.
	// +kubebuilder:validation:MaxProperties=100
	// +mapType=atomic
	// +optional
	Labels map[string]string `json:"labels,omitzero"`
	// Annotations of the NodeClaim and the Node.
	// +mapType=granular
	// +optional
	Annotations map[string]string `json:"annotations,omitzero"`
}

// NodeClaimTemplateSpec is NodeClaimSpec without what only a single claim can know.
type NodeClaimTemplateSpec struct {
	// Taints that the node keeps.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitzero"`
	// StartupTaints are on the node when it joins and are expected to be removed soon by whoever asked for them,
	// usually a DaemonSet. Pods need not tolerate them to have a node bought; the node is not initialized before they
	// are gone.
	// +listType=atomic
	// +optional
	StartupTaints []corev1.Taint `json:"startupTaints,omitzero"`
	// Requirements narrow which nodes may be bought, together with the labels of the template. Never nil: an empty
	// list means no requirement.
	Requirements Requirements `json:"requirements" hash:"ignore"`
	// NodeClassRef names the object with the settings of the cloud. The name may change, group and kind may not.
	// +kubebuilder:validation:XValidation:rule="self.group == oldSelf.group",message="nodeClassRef.group cannot change; make another NodePool"
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",message="nodeClassRef.kind cannot change; make another NodePool"
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is the longest that a node may take from its deletion until its pods are deleted by force,
	// whatever PodDisruptionBudgets and do-not-disrupt annotations say. Left out: as long as it takes. "0s": at once.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	TerminationGracePeriod *Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which a node is replaced.
	// +kubebuilder:default="720h"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}

// Disruption says when and how many nodes of a pool may be taken away by choice.
type Disruption struct {
	// ConsolidateAfter is how long a node must have been without pods coming or going before consolidation looks at it.
	// "Never" switches consolidation off, empty nodes included.
	ConsolidateAfter NillableDuration `json:"consolidateAfter"`
	// ConsolidationPolicy says which nodes consolidation may take.
	// +kubebuilder:default="WhenEmptyOrUnderutilized"
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	// Budgets bound how many nodes of the pool may be going away at once; the tightest active one counts. Left out, it
	// is one budget of 10%. An empty list is no bound at all.
	// +kubebuilder:default={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.schedule) == has(x.duration))",message="a budget needs both schedule and duration, or neither"
	// +listType=atomic
	// +optional
	Budgets []Budget `json:"budgets,omitzero" hash:"ignore"`
}

// ConsolidationPolicy says which nodes consolidation may take.
//
// +kubebuilder:validation:Enum=WhenEmpty;WhenEmptyOrUnderutilized;Balanced
type ConsolidationPolicy string

// The consolidation policies.
const (
	// ConsolidateWhenEmpty takes only nodes that run nothing but DaemonSet pods.
	ConsolidateWhenEmpty ConsolidationPolicy = "WhenEmpty"
	// ConsolidateWhenEmptyOrUnderutilized also takes nodes whose pods fit elsewhere or on something cheaper.
	ConsolidateWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	// ConsolidateBalanced takes underutilized nodes only where the saving is worth the disturbance.
	ConsolidateBalanced ConsolidationPolicy = "Balanced"
)

// Budget bounds how many nodes of a pool may be going away at once.
type Budget struct {
	// Reasons the budget counts for. Left out: all of them.
	// +kubebuilder:validation:MaxItems=50
	// +listType=set
	// +optional
	Reasons []DisruptionReason `json:"reasons,omitzero"`
	// Nodes is a count, or a percentage of the pool's nodes, rounded up.
	// +kubebuilder:default="10%"
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	Nodes string `json:"nodes" hash:"ignore"`
	// Schedule is a cron line (five fields, or @hourly and the like, in UTC) that says when the budget becomes active.
	// Left out: it always is.
	// +kubebuilder:validation:Pattern=`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`
	// +optional
	Schedule *string `json:"schedule,omitempty" hash:"ignore"`
	// Duration is how long the budget stays active after each hit of Schedule, in hours and minutes.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`
	// +optional
	Duration *Duration `json:"duration,omitempty" hash:"ignore"`
}

// DisruptionReason is why a node is taken away by choice.
//
// +kubebuilder:validation:Enum=Underutilized;Empty;Drifted
type DisruptionReason string

// The reasons that a budget can name.
const (
	DisruptionUnderutilized DisruptionReason = "Underutilized"
	DisruptionEmpty         DisruptionReason = "Empty"
	DisruptionDrifted       DisruptionReason = "Drifted"
)

// NodePoolStatus is what has been seen of a NodePool.
type NodePoolStatus struct {
	// Resources is the sum of the capacity of the pool's nodes.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Nodes is how many nodes the pool has.
	// +kubebuilder:default=0
	// +optional
	Nodes int64 `json:"nodes"`
	// NodeClassObservedGeneration is the generation of the node class for which NodeRegistrationHealthy was last reset.
	// +optional
	NodeClassObservedGeneration int64 `json:"nodeClassObservedGeneration,omitempty"`
	// Conditions of the pool; see ConditionReady and the NodePool conditions beside it.
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

	Items []NodePool `json:"items"`
}

// StatusConditions is the view of the pool's conditions: Ready stands on ValidationSucceeded and NodeClassReady.
func (p *NodePool) StatusConditions() ConditionSet {
	return NewConditionSet(p, &p.Status.Conditions, ConditionValidationSucceeded, ConditionNodeClassReady)
}
