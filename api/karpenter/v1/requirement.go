package v1

import corev1 "k8s.io/api/core/v1"

// Requirements is a list of requirements that must all be met.
//
// +kubebuilder:validation:MaxItems=100
// +kubebuilder:validation:XValidation:rule="self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)",message="operator In needs at least one value"
// +kubebuilder:validation:XValidation:rule="self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)",message="operators Gt, Lt, Gte and Lte need exactly one value, a whole number not below 0"
// +kubebuilder:validation:XValidation:rule="self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",message="operator In needs at least as many values as minValues asks for"
// +listType=atomic
type Requirements []Requirement

// Requirement compares one label with values. MinValues can require that several values of the label remain possible.
type Requirement struct {
	// Key of the label. Keys that Joiner reserves are rejected; see spec.template.metadata.labels of NodePool.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	Key string `json:"key"`
	// Operator relates the label to Values: In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte. The last four compare
	// the label as an integer.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt;Gte;Lte
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values to compare with: at least one for In and NotIn, exactly one number for Gt, Lt, Gte and Lte, none otherwise.
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitzero"`
	// MinValues is the minimum number of different values of the label that must remain possible for a launch. Alpha.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +optional
	MinValues *int `json:"minValues,omitempty"`
}

// The operators of Requirement that node selectors of Kubernetes do not have.
const (
	OperatorGte corev1.NodeSelectorOperator = "Gte"
	OperatorLte corev1.NodeSelectorOperator = "Lte"
)
