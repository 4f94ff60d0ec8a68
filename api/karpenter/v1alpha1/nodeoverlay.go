package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// NodeOverlay replaces the price or adds to the capacity of instance types: a negotiated price, or a resource that a device
// plugin provides.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeoverlays,scope=Cluster,categories=karpenter,shortName={overlays}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Weight",type="integer",priority=1,JSONPath=".spec.weight"
type NodeOverlay struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec NodeOverlaySpec `json:"spec"`
	// Status reports whether the overlay is applied.
	// +optional
	Status NodeOverlayStatus `json:"status,omitempty,omitzero"`
}

// NodeOverlaySpec selects offerings and defines their price or capacity.
//
// +kubebuilder:validation:XValidation:rule="!has(self.price) || !has(self.priceAdjustment)",message="set price or priceAdjustment, not both"
type NodeOverlaySpec struct {
	// Requirements select offerings by the labels of the instance type, of the offering and of the NodePool
	// (karpenter.sh/nodepool has its name). An empty list selects all offerings.
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)",message="operator NotIn needs at least one value"
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)",message="operator In needs at least one value"
	// +kubebuilder:validation:XValidation:rule="self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)",message="operators Gt, Lt, Gte and Lte need exactly one value, a whole number not below 0"
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Requirements []Requirement `json:"requirements"`
	// Price is the price of an hour in dollars, instead of the price of AWS: "0.25".
	// +kubebuilder:validation:Pattern=`^\d+(\.\d+)?$`
	// +optional
	Price *string `json:"price,omitempty"`
	// PriceAdjustment changes the price of AWS by dollars per hour ("+0.05", "-0.05") or by percent ("+10%", "-10%";
	// the lowest is "-100%").
	// +kubebuilder:validation:Pattern=`^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$`
	// +optional
	PriceAdjustment *string `json:"priceAdjustment,omitempty"`
	// Capacity sets the amount of resources of an instance, instead of what EC2 reports. cpu, memory, ephemeral-storage
	// and pods cannot be set.
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",message="cpu, memory, ephemeral-storage and pods cannot be set; leave them out"
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitzero"`
	// Weight orders overlays that select the same offering: the one with the highest weight applies. Omitted: 0. Overlays
	// of equal weight must not contradict each other.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// Requirement compares one label with values.
type Requirement struct {
	// Key of the label.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	Key string `json:"key"`
	// Operator relates the label to Values: In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte. The last four compare
	// the label as an integer.
	// +kubebuilder:validation:Enum=Gte;Lte;In;NotIn;Exists;DoesNotExist;Gt;Lt
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values to compare with: at least one for In and NotIn, exactly one number for Gt, Lt, Gte and Lte, none otherwise.
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitzero"`
}

// NodeOverlayStatus is the observed state of a NodeOverlay.
type NodeOverlayStatus struct {
	// Conditions of the overlay; Ready depends on ValidationSucceeded.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeOverlayList is a list of NodeOverlays.
//
// +kubebuilder:object:root=true
type NodeOverlayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the NodeOverlays.
	Items []NodeOverlay `json:"items"`
}

// Reasons of a NodeOverlay's ValidationSucceeded=False.
const (
	// ReasonRuntimeValidation is the reason if the spec is invalid although the schema accepts it.
	ReasonRuntimeValidation = "RuntimeValidation"
	// ReasonConflict is the reason if the overlay contradicts another overlay of the same weight.
	ReasonConflict = "Conflict"
)

// StatusConditions returns the overlay's conditions. Ready depends on ValidationSucceeded.
func (o *NodeOverlay) StatusConditions() karpv1.ConditionSet {
	return karpv1.NewConditionSet(o, &o.Status.Conditions, karpv1.ConditionValidationSucceeded)
}
