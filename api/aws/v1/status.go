package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// EC2NodeClassStatus is what has been found in AWS for an EC2NodeClass.
type EC2NodeClassStatus struct {
	// Subnets to launch into, the one with the most free addresses first, then by id.
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups of the instances, by id.
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	// CapacityReservations to launch into, by id.
	// +optional
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`
	// AMIs to launch from.
	// +optional
	AMIs []AMI `json:"amis,omitempty"`
	// InstanceProfile is the name of the instance profile in use, whether it was given or made.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`
	// Conditions of the node class; see the Condition constants.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Subnet is a subnet that was found.
type Subnet struct {
	// ID of the subnet.
	ID string `json:"id"`
	// Zone it is in, for instance us-east-1a. Accounts disagree on which place that is.
	Zone string `json:"zone"`
	// ZoneID of the same, for instance use1-az4. Accounts agree on it.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is a security group that was found.
type SecurityGroup struct {
	// ID of the security group.
	ID string `json:"id"`
	// Name is its group name.
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is a machine image that was found.
type AMI struct {
	// ID of the image.
	ID string `json:"id"`
	// Deprecated says that its owner has deprecated it.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
	// Name of the image.
	// +optional
	Name string `json:"name,omitempty"`
	// Requirements that an instance type must meet to start from it. Never nil.
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservation is a capacity reservation that was found.
type CapacityReservation struct {
	// AvailabilityZone it is in.
	AvailabilityZone string `json:"availabilityZone"`
	// EndTime is when the capacity is taken back. Left out: when its owner cancels it.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty" hash:"ignore"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	ID string `json:"id"`
	// InstanceMatchCriteria is which launches it takes.
	// +kubebuilder:validation:Enum=open;targeted
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`
	// InstanceType it holds.
	InstanceType string `json:"instanceType"`
	// OwnerID is the account that owns it.
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	OwnerID string `json:"ownerID"`
	// ReservationType of the reservation.
	// +kubebuilder:default=default
	// +optional
	ReservationType CapacityReservationType `json:"reservationType,omitempty"`
	// Interruptible says that the owner may take the capacity back at any time.
	// +optional
	Interruptible bool `json:"interruptible,omitempty"`
	// State is active, or expiring in the last 40 minutes of a capacity block.
	// +kubebuilder:default=active
	// +optional
	State CapacityReservationState `json:"state,omitempty"`
}

// CapacityReservationType is how a capacity reservation was bought.
//
// +kubebuilder:validation:Enum=default;capacity-block
type CapacityReservationType string

// The types of capacity reservations.
const (
	CapacityReservationDefault CapacityReservationType = "default"
	CapacityReservationBlock   CapacityReservationType = "capacity-block"
)

// CapacityReservationState is whether a capacity reservation will stay.
//
// +kubebuilder:validation:Enum=active;expiring
type CapacityReservationState string

// The states of capacity reservations.
const (
	CapacityReservationActive   CapacityReservationState = "active"
	CapacityReservationExpiring CapacityReservationState = "expiring"
)

// Conditions of an EC2NodeClass. Ready stands on all of them; on CapacityReservationsReady only where reserved capacity
// is switched on.
const (
	ConditionAMIsReady                 = "AMIsReady"
	ConditionSubnetsReady              = "SubnetsReady"
	ConditionSecurityGroupsReady       = "SecurityGroupsReady"
	ConditionInstanceProfileReady      = "InstanceProfileReady"
	ConditionValidationSucceeded       = "ValidationSucceeded"
	ConditionPlacementGroupReady       = "PlacementGroupReady"
	ConditionCapacityReservationsReady = "CapacityReservationsReady"
)

// Reasons of an EC2NodeClass's conditions.
const (
	// ReasonSubnetsNotFound and ReasonSecurityGroupsNotFound: no term found any.
	ReasonSubnetsNotFound        = "SubnetsNotFound"
	ReasonSecurityGroupsNotFound = "SecurityGroupsNotFound"
	// ReasonAMINotFound: no term found any image. ReasonUnsupportedAlias: this Kubernetes version has no such image.
	ReasonAMINotFound      = "AMINotFound"
	ReasonUnsupportedAlias = "UnsupportedAlias"
	// ReasonPlacementGroupNotFound: there is none. ReasonPlacementGroupResolutionFailed: AWS could not say.
	ReasonPlacementGroupNotFound         = "PlacementGroupNotFound"
	ReasonPlacementGroupResolutionFailed = "PlacementGroupResolutionFailed"
	// Reasons of ValidationSucceeded.
	ReasonClusterCIDRResolutionFailed         = "ClusterCIDRResolutionFailed"
	ReasonDependenciesNotReady                = "DependenciesNotReady"
	ReasonTagValidationFailed                 = "TagValidationFailed"
	ReasonCreateLaunchTemplateAuthCheckFailed = "CreateLaunchTemplateAuthCheckFailed"
	ReasonCreateFleetAuthCheckFailed          = "CreateFleetAuthCheckFailed"
	ReasonRunInstancesAuthCheckFailed         = "RunInstancesAuthCheckFailed"
	ReasonUserDataSizeLimitExceeded           = "UserDataSizeLimitExceeded"
	// ReasonInvalidKubeletConfiguration: the kubelet knows no such setting or value. ReasonUnsupportedKubeletConfiguration:
	// the AMI family has no way to set it.
	ReasonInvalidKubeletConfiguration     = "InvalidKubeletConfiguration"
	ReasonUnsupportedKubeletConfiguration = "UnsupportedKubeletConfiguration"
)

// StatusConditions is the view of the node class's conditions. Ready stands on all but CapacityReservationsReady, and
// on the gated ones: the caller names CapacityReservationsReady where reserved capacity is switched on.
func (c *EC2NodeClass) StatusConditions(gated ...string) karpv1.ConditionSet {
	dependents := append([]string{
		ConditionAMIsReady,
		ConditionSubnetsReady,
		ConditionSecurityGroupsReady,
		ConditionInstanceProfileReady,
		ConditionValidationSucceeded,
		ConditionPlacementGroupReady,
	}, gated...)
	return karpv1.NewConditionSet(c, &c.Status.Conditions, dependents...)
}
