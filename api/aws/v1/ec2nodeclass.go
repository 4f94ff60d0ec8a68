package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EC2NodeClass defines the EC2 instances of nodes: AMI, network, IAM role, disks and kubelet.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=ec2nodeclasses,scope=Cluster,categories=karpenter,shortName={ec2nc,ec2ncs}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Role",type="string",priority=1,JSONPath=".spec.role"
type EC2NodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec EC2NodeClassSpec `json:"spec,omitempty,omitzero"`
	// Status is what the controller found in AWS.
	// +optional
	Status EC2NodeClassStatus `json:"status,omitempty,omitzero"`
}

// EC2NodeClassSpec is the desired state of an EC2NodeClass.
//
// +kubebuilder:validation:XValidation:rule="(has(self.role) && !has(self.instanceProfile)) || (!has(self.role) && has(self.instanceProfile))",message="set exactly one of role and instanceProfile"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'al2') ? (self.amiFamily == 'Custom' || self.amiFamily == 'AL2') : true)",message="with an al2 alias, amiFamily must be left out or be AL2 or Custom"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'al2023') ? (self.amiFamily == 'Custom' || self.amiFamily == 'AL2023') : true)",message="with an al2023 alias, amiFamily must be left out or be AL2023 or Custom"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'bottlerocket') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Bottlerocket') : true)",message="with a bottlerocket alias, amiFamily must be left out or be Bottlerocket or Custom"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2019') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2019') : true)",message="with a windows2019 alias, amiFamily must be left out or be Windows2019 or Custom"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2022') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2022') : true)",message="with a windows2022 alias, amiFamily must be left out or be Windows2022 or Custom"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2025') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2025') : true)",message="with a windows2025 alias, amiFamily must be left out or be Windows2025 or Custom"
// +kubebuilder:validation:XValidation:rule="self.amiSelectorTerms.exists(x, has(x.alias)) ? true : has(self.amiFamily)",message="without an alias in amiSelectorTerms, amiFamily must be set"
type EC2NodeClassSpec struct {
	// SubnetSelectorTerms select the subnets to launch into. A subnet is used if any term selects it.
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.size() != 0",message="give at least one term"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id))",message="each term needs tags or id"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.id) && has(x.tags))",message="a term with id must not have other fields"
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms" hash:"ignore"`
	// SecurityGroupSelectorTerms select the security groups of the instances. A group is used if any term selects it.
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.size() != 0",message="give at least one term"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.name))",message="each term needs tags, id or name"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.id) && (has(x.tags) || has(x.name)))",message="a term with id must not have other fields"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.name) && (has(x.tags) || has(x.id)))",message="a term with name must not have other fields"
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms" hash:"ignore"`
	// CapacityReservationSelectorTerms select the capacity reservations to launch into. A reservation is used if any term
	// selects it. Omitted: none. The schema rejects an empty list.
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))",message="each term needs tags, id or instanceMatchCriteria"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))",message="a term with id must not have other fields"
	// +optional
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty" hash:"ignore"`
	// PlacementGroupSelector selects the placement group to launch into.
	// +optional
	PlacementGroupSelector *PlacementGroupSelector `json:"placementGroupSelector,omitempty"`
	// AssociatePublicIPAddress is whether instances get a public IPv4 address. Omitted: the setting of the subnet.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`
	// IPPrefixCount is the number of IPv4 prefixes of the primary network interface.
	// +kubebuilder:validation:Minimum=0
	// +optional
	IPPrefixCount *int32 `json:"ipPrefixCount,omitempty" hash:"ignore"`
	// AMISelectorTerms select the AMIs. An AMI is used if any term selects it; of the AMIs that suit an instance type, the
	// newest is used.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))",message="each term needs tags, id, name, alias or ssmParameter"
	// +kubebuilder:validation:XValidation:rule="!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) || has(x.owner)))",message="a term with id must not have other fields"
	// +kubebuilder:validation:XValidation:rule="!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) || has(x.owner)))",message="a term with alias must not have other fields"
	// +kubebuilder:validation:XValidation:rule="!(self.exists(x, has(x.alias)) && self.size() != 1)",message="a term with alias must be the only term"
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms" hash:"ignore"`
	// AMIFamily defines the format of the user data and the default disks. Omitted: the family of the alias, see
	// ResolvedAMIFamily.
	// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Custom;Windows2019;Windows2022;Windows2025
	// +optional
	AMIFamily *string `json:"amiFamily,omitempty" hash:"ignore"`
	// UserData is merged with the user data that Joiner generates, in the format of the AMI family. For Custom it is used alone.
	// +optional
	UserData *string `json:"userData,omitempty"`
	// Role is the name of the IAM role of the instances. Joiner creates an instance profile for it.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="role must name a role"
	// +optional
	Role string `json:"role,omitempty"`
	// InstanceProfile is the name of an existing instance profile with a role.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="instanceProfile must name an instance profile"
	// +optional
	InstanceProfile *string `json:"instanceProfile,omitempty"`
	// Tags are added to every AWS resource created for this EC2NodeClass. Keys that mark ownership are rejected.
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '')",message="a tag needs a key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k !='eks:eks-cluster-name')",message="the tag eks:eks-cluster-name is set for you; leave it out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('kubernetes.io/cluster') )",message="tags under kubernetes.io/cluster are set for you; leave them out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'karpenter.sh/nodepool')",message="the tag karpenter.sh/nodepool is set for you; leave it out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k !='karpenter.sh/nodeclaim')",message="the tag karpenter.sh/nodeclaim is set for you; leave it out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k !='karpenter.k8s.aws/ec2nodeclass')",message="the tag karpenter.k8s.aws/ec2nodeclass is set for you; leave it out"
	// +optional
	Tags map[string]string `json:"tags,omitzero"`
	// Kubelet has the kubelet's settings. They also determine how much of an instance is allocatable.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
	// BlockDeviceMappings are the EBS volumes of an instance. Omitted: the default volumes of the AMI family.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(x, has(x.rootVolume)?x.rootVolume==true:false).size() <= 1",message="at most one entry may be the rootVolume"
	// +optional
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitzero"`
	// InstanceStorePolicy defines the use of the instance store volumes. Omitted: they are not used.
	// +optional
	InstanceStorePolicy *InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`
	// NetworkInterfaces are the network interfaces of an instance at launch. Omitted: one primary interface.
	// +kubebuilder:validation:MaxItems=150
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.exists(x, x.deviceIndex == 0 && x.networkCardIndex == 0 && x.interfaceType == 'interface')",message="one entry must be the primary interface: networkCardIndex 0, deviceIndex 0, interfaceType 'interface'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.filter(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex).size() == 1 && (x.interfaceType != 'efa-only' || self.filter(y, x.networkCardIndex == y.networkCardIndex && y.interfaceType == 'efa-only').size() == 1))",message="each pair of networkCardIndex and deviceIndex may occur once, and each network card may have one efa-only interface"
	// +optional
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitzero"`
	// DetailedMonitoring enables CloudWatch's one-minute metrics.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
	// MetadataOptions are the options of the instance metadata service.
	// +kubebuilder:default={httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// ConnectionTracking sets the idle timeouts of tracked connections.
	// +optional
	ConnectionTracking *ConnectionTracking `json:"connectionTracking,omitempty"`
	// Context is passed to CreateFleet, which reserves it for AWS.
	// +optional
	Context *string `json:"context,omitempty"`
	// CPUOptions are the CPU options of the instance.
	// +optional
	CPUOptions *CPUOptions `json:"cpuOptions,omitempty"`
}

// EC2NodeClassList is a list of EC2NodeClasses.
//
// +kubebuilder:object:root=true
type EC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the EC2NodeClasses.
	Items []EC2NodeClass `json:"items"`
}
