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

// Conditions of an EC2NodeClass. Ready stands on all but the last; on CapacityReservationsReady only where reserved
// capacity is switched on.
const (
	// ConditionAMIsReady says that images were found.
	ConditionAMIsReady = "AMIsReady"
	// ConditionSubnetsReady says that subnets were found.
	ConditionSubnetsReady = "SubnetsReady"
	// ConditionSecurityGroupsReady says that security groups were found.
	ConditionSecurityGroupsReady = "SecurityGroupsReady"
	// ConditionInstanceProfileReady says that nodes have an instance profile with their role.
	ConditionInstanceProfileReady = "InstanceProfileReady"
	// ConditionValidationSucceeded says that EC2 would launch what the spec asks for.
	ConditionValidationSucceeded = "ValidationSucceeded"
	// ConditionPlacementGroupReady says that the placement group was found, or that none is asked for.
	ConditionPlacementGroupReady = "PlacementGroupReady"
	// ConditionCapacityReservationsReady says that capacity reservations were looked for.
	ConditionCapacityReservationsReady = "CapacityReservationsReady"

	// ConditionPreflightPassed says whether the user data leads to nodes as they are meant to be, and whether these can join, before any is launched.
	// Ready does not stand on it. What is certain to keep every node from joining makes ValidationSucceeded False, too,
	// unless AnnotationPreflight says otherwise.
	ConditionPreflightPassed = "PreflightPassed"

	// ConditionImageHeldBack says that an image that was found is not used, because nodes with it failed. It is there only while
	// that is so, and Ready does not stand on it.
	ConditionImageHeldBack = "ImageHeldBack"
)

// AnnotationNodeDomains on an EC2NodeClass lists domains, separated by commas, that the names of its Nodes may have besides the domain of the
// private DNS name. "*" allows any name. The address of a Node must be one of its instance in any case.
const AnnotationNodeDomains = "joiner.sh/node-domains"

// AnnotationPreflight, on an EC2NodeClass, says what comes of problems that are found before a launch.
const AnnotationPreflight = "joiner.sh/preflight"

// The values of AnnotationPreflight. PreflightEnforce, the default, launches nothing that is certain never to join;
// PreflightWarn only tells; PreflightOff does not look.
const (
	PreflightEnforce = "enforce"
	PreflightWarn    = "warn"
	PreflightOff     = "off"
)

// Reasons of an EC2NodeClass's conditions.
const (
	ReasonSubnetsNotFound                     = "SubnetsNotFound"                     // no term found any subnet
	ReasonSecurityGroupsNotFound              = "SecurityGroupsNotFound"              // no term found any security group
	ReasonAMINotFound                         = "AMINotFound"                         // no term found any image
	ReasonUnsupportedAlias                    = "UnsupportedAlias"                    // this Kubernetes version has no such image
	ReasonPlacementGroupNotFound              = "PlacementGroupNotFound"              // there is no such placement group
	ReasonPlacementGroupResolutionFailed      = "PlacementGroupResolutionFailed"      // AWS could not say whether there is one
	ReasonClusterCIDRResolutionFailed         = "ClusterCIDRResolutionFailed"         // the CIDR of the cluster's services is not known
	ReasonDependenciesNotReady                = "DependenciesNotReady"                // it waits for the conditions that it names
	ReasonTagValidationFailed                 = "TagValidationFailed"                 // a tag is not for users to set
	ReasonCreateLaunchTemplateAuthCheckFailed = "CreateLaunchTemplateAuthCheckFailed" // IAM does not allow the launch template
	ReasonCreateFleetAuthCheckFailed          = "CreateFleetAuthCheckFailed"          // IAM does not allow CreateFleet
	ReasonRunInstancesAuthCheckFailed         = "RunInstancesAuthCheckFailed"         // IAM does not allow RunInstances
	ReasonUserDataSizeLimitExceeded           = "UserDataSizeLimitExceeded"           // the user data is longer than EC2 takes
	ReasonInvalidKubeletConfiguration         = "InvalidKubeletConfiguration"         // the kubelet knows no such setting or value
	ReasonUnsupportedKubeletConfiguration     = "UnsupportedKubeletConfiguration"     // the AMI family has no way to set it
	ReasonPreflightInvalid                    = "PreflightInvalid"                    // joiner.sh/preflight has a value that it cannot have
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
