package v1

// SubnetSelectorTerm selects subnets. Every field that is set must match.
type SubnetSelectorTerm struct {
	// Tags of the subnet; the value "*" means any value.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="a tag needs a key and a value; '*' is any value"
	// +optional
	Tags map[string]string `json:"tags,omitzero"`
	// ID of the subnet.
	// +kubebuilder:validation:Pattern=`subnet-[0-9a-z]+`
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm selects security groups. Every field that is set must match.
type SecurityGroupSelectorTerm struct {
	// Tags of the security group; the value "*" means any value.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="a tag needs a key and a value; '*' is any value"
	// +optional
	Tags map[string]string `json:"tags,omitzero"`
	// ID of the security group.
	// +kubebuilder:validation:Pattern=`sg-[0-9a-z]+`
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the security group: its group name, not its tag Name.
	// +optional
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm selects capacity reservations. Every field that is set must match.
type CapacityReservationSelectorTerm struct {
	// Tags of the reservation; the value "*" means any value.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="a tag needs a key and a value; '*' is any value"
	// +optional
	Tags map[string]string `json:"tags,omitzero"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// OwnerID is the account that owns the reservation.
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// InstanceMatchCriteria is open or targeted.
	// +kubebuilder:validation:Enum=open;targeted
	// +optional
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// PlacementGroupSelector selects one placement group, by name or by ID.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.id)",message="set name or id"
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.id))",message="set name or id, not both"
type PlacementGroupSelector struct {
	// Name of the placement group.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Name *string `json:"name,omitempty"`
	// ID of the placement group.
	// +kubebuilder:validation:Pattern=`^pg-[0-9a-z]+$`
	// +optional
	ID *string `json:"id,omitempty"`
}

// AMISelectorTerm selects AMIs. Every field that is set must match.
type AMISelectorTerm struct {
	// Alias is family@version of an AMI that AWS publishes for EKS, for example al2023@v20250501 or bottlerocket@v1.10.0.
	// With the version "latest", nodes drift at each release of the AMI. Windows aliases allow only "latest". See
	// ParseAlias.
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]+@.+$')",message="an alias is written family@version, for example al2023@latest"
	// +kubebuilder:validation:XValidation:rule="self.split('@')[0] in ['al2','al2023','bottlerocket','windows2019','windows2022','windows2025']",message="the family of an alias is one of al2, al2023, bottlerocket, windows2019, windows2022, windows2025"
	// +kubebuilder:validation:XValidation:rule="self.split('@')[0] in ['windows2019','windows2022','windows2025'] ? self.split('@')[1] == 'latest' : true",message="the version of a Windows alias must be latest"
	// +optional
	Alias string `json:"alias,omitempty"`
	// Tags of the image; the value "*" means any value.
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="a tag needs a key and a value; '*' is any value"
	// +optional
	Tags map[string]string `json:"tags,omitzero"`
	// ID of the image.
	// +kubebuilder:validation:Pattern=`ami-[0-9a-z]+`
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the AMI, not its tag Name. * and ? are wildcards.
	// +optional
	Name string `json:"name,omitempty"`
	// Owner of the image: an account, "self", "amazon" or "aws-marketplace".
	// +optional
	Owner string `json:"owner,omitempty"`
	// SSMParameter is the name or ARN of an SSM parameter whose value is an image's ID.
	// +optional
	SSMParameter string `json:"ssmParameter,omitempty"`
}
