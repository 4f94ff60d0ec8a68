package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EC2NodeClass says how the EC2 instances behind nodes are made: image, network, role, disks, kubelet.
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

	// Spec is what the user asks for.
	// +optional
	Spec EC2NodeClassSpec `json:"spec,omitempty,omitzero"`
	// Status is what has been found in AWS for it.
	// +optional
	Status EC2NodeClassStatus `json:"status,omitempty,omitzero"`
}

// EC2NodeClassSpec is the wish of an EC2NodeClass.
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
	// SubnetSelectorTerms find the subnets to launch into. What any term finds counts.
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.size() != 0",message="give at least one term"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id))",message="each term needs tags or id"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.id) && has(x.tags))",message="a term with id may hold nothing else"
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms" hash:"ignore"`
	// SecurityGroupSelectorTerms find the security groups of the instances. What any term finds counts.
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.size() != 0",message="give at least one term"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.name))",message="each term needs tags, id or name"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.id) && (has(x.tags) || has(x.name)))",message="a term with id may hold nothing else"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.name) && (has(x.tags) || has(x.id)))",message="a term with name may hold nothing else"
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms" hash:"ignore"`
	// CapacityReservationSelectorTerms find the capacity reservations to launch into. What any term finds counts. Left
	// out: none. The schema refuses an empty list.
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))",message="each term needs tags, id or instanceMatchCriteria"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))",message="a term with id may hold nothing else"
	// +optional
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty" hash:"ignore"`
	// PlacementGroupSelector finds the placement group to launch into.
	// +optional
	PlacementGroupSelector *PlacementGroupSelector `json:"placementGroupSelector,omitempty"`
	// AssociatePublicIPAddress says whether instances get a public address. Left out: what the subnet says.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`
	// IPPrefixCount is how many IPv4 prefixes the primary network interface gets.
	// +kubebuilder:validation:Minimum=0
	// +optional
	IPPrefixCount *int32 `json:"ipPrefixCount,omitempty" hash:"ignore"`
	// AMISelectorTerms find the machine images. What any term finds counts; the newest that fits an instance type is
	// taken.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))",message="each term needs tags, id, name, alias or ssmParameter"
	// +kubebuilder:validation:XValidation:rule="!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) || has(x.owner)))",message="a term with id may hold nothing else"
	// +kubebuilder:validation:XValidation:rule="!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) || has(x.owner)))",message="a term with alias may hold nothing else"
	// +kubebuilder:validation:XValidation:rule="!(self.exists(x, has(x.alias)) && self.size() != 1)",message="a term with alias must be the only term"
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms" hash:"ignore"`
	// AMIFamily says how the image is booted: the form of the user data and the disks. Left out: what the alias says,
	// see ResolvedAMIFamily.
	// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Custom;Windows2019;Windows2022;Windows2025
	// +optional
	AMIFamily *string `json:"amiFamily,omitempty" hash:"ignore"`
	// UserData is merged with what Joiner writes, in the form that the AMI family wants; for Custom it is all there is.
	// +optional
	UserData *string `json:"userData,omitempty"`
	// Role is the name of the IAM role that instances run as; an instance profile is made for it.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="role must name a role"
	// +optional
	Role string `json:"role,omitempty"`
	// InstanceProfile is the name of an instance profile that exists and already holds a role.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="instanceProfile must name an instance profile"
	// +optional
	InstanceProfile *string `json:"instanceProfile,omitempty"`
	// Tags are put on everything made for this node class. Keys that mark ownership are refused.
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '')",message="a tag needs a key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k !='eks:eks-cluster-name')",message="the tag eks:eks-cluster-name is set for you; leave it out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('kubernetes.io/cluster') )",message="tags under kubernetes.io/cluster are set for you; leave them out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'karpenter.sh/nodepool')",message="the tag karpenter.sh/nodepool is set for you; leave it out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k !='karpenter.sh/nodeclaim')",message="the tag karpenter.sh/nodeclaim is set for you; leave it out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k !='karpenter.k8s.aws/ec2nodeclass')",message="the tag karpenter.k8s.aws/ec2nodeclass is set for you; leave it out"
	// +optional
	Tags map[string]string `json:"tags,omitzero"`
	// Kubelet settings; they also take part in how much of an instance pods can use.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
	// BlockDeviceMappings are the EBS volumes of an instance. Left out: what the AMI family needs.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(x, has(x.rootVolume)?x.rootVolume==true:false).size() <= 1",message="at most one entry may be the rootVolume"
	// +optional
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitzero"`
	// InstanceStorePolicy says what becomes of the disks inside the machine. Left out: nothing.
	// +optional
	InstanceStorePolicy *InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`
	// NetworkInterfaces are the interfaces that an instance starts with. Left out: one primary interface.
	// +kubebuilder:validation:MaxItems=150
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.exists(x, x.deviceIndex == 0 && x.networkCardIndex == 0 && x.interfaceType == 'interface')",message="one entry must be the primary interface: networkCardIndex 0, deviceIndex 0, interfaceType 'interface'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.filter(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex).size() == 1 && (x.interfaceType != 'efa-only' || self.filter(y, x.networkCardIndex == y.networkCardIndex && y.interfaceType == 'efa-only').size() == 1))",message="each pair of networkCardIndex and deviceIndex may occur once, and each network card may have one efa-only interface"
	// +optional
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitzero"`
	// DetailedMonitoring turns CloudWatch's one-minute metrics on.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
	// MetadataOptions says how the instance metadata service can be reached.
	// +kubebuilder:default={httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// ConnectionTracking sets after how much idleness the security groups forget a connection.
	// +optional
	ConnectionTracking *ConnectionTracking `json:"connectionTracking,omitempty"`
	// Context is passed on to CreateFleet, which keeps it reserved.
	// +optional
	Context *string `json:"context,omitempty"`
	// CPUOptions of the instance.
	// +optional
	CPUOptions *CPUOptions `json:"cpuOptions,omitempty"`
}

// EC2NodeClassList is a list of EC2NodeClasses.
//
// +kubebuilder:object:root=true
type EC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EC2NodeClass `json:"items"`
}
