package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// EC2NodeClassStatus is the observed state of an EC2NodeClass in AWS.
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
	// InstanceProfile is the name of the instance profile in use: that of the spec, or the one that Joiner created.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`
	// Conditions of the EC2NodeClass; see docs/reference/conditions.md.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Subnet is a selected subnet.
type Subnet struct {
	// ID of the subnet.
	ID string `json:"id"`
	// Zone is the name of the zone, for example us-east-1a. In another account, the same name can stand for another
	// zone.
	Zone string `json:"zone"`
	// ZoneID is the ID of the zone, for example use1-az4. It is the same in all accounts.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is a selected security group.
type SecurityGroup struct {
	// ID of the security group.
	ID string `json:"id"`
	// Name is its group name.
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is a selected AMI.
type AMI struct {
	// ID of the image.
	ID string `json:"id"`
	// Deprecated is true if the owner of the AMI has deprecated it.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
	// Name of the image.
	// +optional
	Name string `json:"name,omitempty"`
	// Requirements restrict the instance types that can use the AMI. Never nil.
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservation is a selected capacity reservation.
type CapacityReservation struct {
	// AvailabilityZone of the reservation.
	AvailabilityZone string `json:"availabilityZone"`
	// EndTime is when the reservation ends. Omitted: the reservation has no end until its owner cancels it.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty" hash:"ignore"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	ID string `json:"id"`
	// InstanceMatchCriteria is open (any matching launch uses it) or targeted (only launches that name it).
	// +kubebuilder:validation:Enum=open;targeted
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`
	// InstanceType of the reservation.
	InstanceType string `json:"instanceType"`
	// OwnerID is the account that owns the reservation.
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	OwnerID string `json:"ownerID"`
	// ReservationType is default or capacity-block.
	// +kubebuilder:default=default
	// +optional
	ReservationType CapacityReservationType `json:"reservationType,omitempty"`
	// Interruptible is true if the owner may reclaim the capacity at any time.
	// +optional
	Interruptible bool `json:"interruptible,omitempty"`
	// State is active, or expiring in the last 40 minutes of a capacity block.
	// +kubebuilder:default=active
	// +optional
	State CapacityReservationState `json:"state,omitempty"`
}

// CapacityReservationType is the type of a capacity reservation: on-demand (default) or a capacity block.
//
// +kubebuilder:validation:Enum=default;capacity-block
type CapacityReservationType string

// The types of capacity reservations.
const (
	CapacityReservationDefault CapacityReservationType = "default"
	CapacityReservationBlock   CapacityReservationType = "capacity-block"
)

// CapacityReservationState is the state of a capacity reservation.
//
// +kubebuilder:validation:Enum=active;expiring
type CapacityReservationState string

// The states of capacity reservations.
const (
	CapacityReservationActive   CapacityReservationState = "active"
	CapacityReservationExpiring CapacityReservationState = "expiring"
)

// Conditions of an EC2NodeClass. Ready depends on the first six, and on CapacityReservationsReady if reserved capacity
// is enabled.
const (
	// ConditionAMIsReady is True if AMIs were found.
	ConditionAMIsReady = "AMIsReady"
	// ConditionSubnetsReady is True if subnets were found.
	ConditionSubnetsReady = "SubnetsReady"
	// ConditionSecurityGroupsReady is True if security groups were found.
	ConditionSecurityGroupsReady = "SecurityGroupsReady"
	// ConditionInstanceProfileReady is True if there is an instance profile with the role of the nodes.
	ConditionInstanceProfileReady = "InstanceProfileReady"
	// ConditionValidationSucceeded is True if EC2 accepts a launch with the spec.
	ConditionValidationSucceeded = "ValidationSucceeded"
	// ConditionPlacementGroupReady is True if the placement group was found, or none is selected.
	ConditionPlacementGroupReady = "PlacementGroupReady"
	// ConditionCapacityReservationsReady is True if the selected capacity reservations were read.
	ConditionCapacityReservationsReady = "CapacityReservationsReady"

	// ConditionPreflightPassed reports before a launch whether nodes with this user data and network can join as specified.
	// Ready does not depend on it. A problem that certainly keeps every node from joining also makes ValidationSucceeded False,
	// unless AnnotationPreflight is warn or off.
	ConditionPreflightPassed = "PreflightPassed"

	// ConditionImageHeldBack is True while a selected AMI is not used because nodes with it failed. It is absent otherwise.
	// Ready does not depend on it.
	ConditionImageHeldBack = "ImageHeldBack"
)

// AnnotationNodeDomains on an EC2NodeClass is a list of domains, separated by commas, that the names of its Nodes may
// have besides the domain of the private DNS name. "*" allows any name. In each case, the address of a Node must be
// an address of its instance.
const AnnotationNodeDomains = "joiner.sh/node-domains"

// AnnotationPreflight on an EC2NodeClass is the effect of problems that are found before a launch: "enforce" (the
// default), "warn" or "off".
const AnnotationPreflight = "joiner.sh/preflight"

// The values of AnnotationPreflight. PreflightEnforce, the default, blocks launches of instances that certainly cannot join.
// PreflightWarn reports problems only. PreflightOff disables the checks.
const (
	PreflightEnforce = "enforce"
	PreflightWarn    = "warn"
	PreflightOff     = "off"
)

// Reasons of an EC2NodeClass's conditions.
const (
	ReasonSubnetsNotFound                     = "SubnetsNotFound"                     // no term selects a subnet
	ReasonSecurityGroupsNotFound              = "SecurityGroupsNotFound"              // no term selects a security group
	ReasonAMINotFound                         = "AMINotFound"                         // no term selects an AMI
	ReasonUnsupportedAlias                    = "UnsupportedAlias"                    // there is no such AMI for this Kubernetes version
	ReasonPlacementGroupNotFound              = "PlacementGroupNotFound"              // the placement group does not exist
	ReasonPlacementGroupResolutionFailed      = "PlacementGroupResolutionFailed"      // the placement group could not be read from AWS
	ReasonClusterCIDRResolutionFailed         = "ClusterCIDRResolutionFailed"         // the service CIDR of the cluster could not be read
	ReasonDependenciesNotReady                = "DependenciesNotReady"                // the conditions named in the message are not ready yet
	ReasonTagValidationFailed                 = "TagValidationFailed"                 // a tag is reserved for Joiner
	ReasonCreateLaunchTemplateAuthCheckFailed = "CreateLaunchTemplateAuthCheckFailed" // IAM denies CreateLaunchTemplate
	ReasonCreateFleetAuthCheckFailed          = "CreateFleetAuthCheckFailed"          // IAM denies CreateFleet
	ReasonRunInstancesAuthCheckFailed         = "RunInstancesAuthCheckFailed"         // IAM denies RunInstances
	ReasonUserDataSizeLimitExceeded           = "UserDataSizeLimitExceeded"           // the user data is larger than EC2 accepts
	ReasonInvalidKubeletConfiguration         = "InvalidKubeletConfiguration"         // the kubelet does not know the setting or value
	ReasonUnsupportedKubeletConfiguration     = "UnsupportedKubeletConfiguration"     // the AMI family's user data cannot express the setting
	ReasonPreflightInvalid                    = "PreflightInvalid"                    // AnnotationPreflight has an unknown value
)

// StatusConditions returns the conditions of the EC2NodeClass. Ready depends on the six conditions listed below and on
// the gated conditions. The caller passes ConditionCapacityReservationsReady as gated if reserved capacity is enabled.
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
