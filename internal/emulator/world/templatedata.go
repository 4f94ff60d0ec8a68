package world

import (
	"cmp"
	"encoding/base64"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// TemplateData is what a launch template says about the instances made from it.
// An absent value is nil or empty. The tags are the names in EC2's requests and,
// where it is not the same with a small first letter, in its answers; then that of the elements of a list, where it is not "item".
type TemplateData struct {
	ImageID         string              `aws:"ImageId"`
	InstanceType    string              `aws:"InstanceType"`
	UserData        string              `aws:"UserData"` // base64
	Profile         *ProfileRef         `aws:"IamInstanceProfile"`
	Devices         []Device            `aws:"BlockDeviceMapping,blockDeviceMappingSet"`
	Interfaces      []InterfaceSpec     `aws:"NetworkInterface,networkInterfaceSet"`
	GroupIDs        []string            `aws:"SecurityGroupId,securityGroupIdSet"`
	GroupNames      []string            `aws:"SecurityGroup,securityGroupSet"`
	Tags            []TagSpecification  `aws:"TagSpecification,tagSpecificationSet"`
	MetadataOptions *MetadataOptions    `aws:"MetadataOptions"`
	Monitoring      *Switch             `aws:"Monitoring"`
	Placement       *Placement          `aws:"Placement"`
	CPU             *CPUOptions         `aws:"CpuOptions"`
	Reservation     *ReservationOptions `aws:"CapacityReservationSpecification"`
	Market          *MarketOptions      `aws:"InstanceMarketOptions"`
	Enclave         *Switch             `aws:"EnclaveOptions"`
	PrivateDNS      *PrivateDNSOptions  `aws:"PrivateDnsNameOptions"`
	Credit          *CreditOptions      `aws:"CreditSpecification"`
	KeyName         string              `aws:"KeyName"`
	EBSOptimized    *bool               `aws:"EbsOptimized"`

	DisableTermination *bool  `aws:"DisableApiTermination"`
	DisableStop        *bool  `aws:"DisableApiStop"`
	ShutdownBehavior   string `aws:"InstanceInitiatedShutdownBehavior"`
}

// ProfileRef names an instance profile, by one or the other.
type ProfileRef struct {
	ARN  string `aws:"Arn"`
	Name string `aws:"Name"`
}

// Device is a block device mapping.
type Device struct {
	DeviceName  string      `aws:"DeviceName"`
	VirtualName string      `aws:"VirtualName"`
	EBS         *VolumeSpec `aws:"Ebs"`
	NoDevice    *string     `aws:"NoDevice"`
}

// VolumeSpec is an EBS volume that is asked for.
type VolumeSpec struct {
	Encrypted           *bool  `aws:"Encrypted"`
	DeleteOnTermination *bool  `aws:"DeleteOnTermination"`
	IOPS                *int64 `aws:"Iops"`
	KMSKeyID            string `aws:"KmsKeyId"`
	SnapshotID          string `aws:"SnapshotId"`
	SizeGiB             *int64 `aws:"VolumeSize"`
	Kind                string `aws:"VolumeType"`
	Throughput          *int64 `aws:"Throughput"`
	InitializationRate  *int64 `aws:"VolumeInitializationRate"`
}

// InterfaceSpec is a network interface that is asked for.
type InterfaceSpec struct {
	PublicIP            *bool               `aws:"AssociatePublicIpAddress"`
	DeleteOnTermination *bool               `aws:"DeleteOnTermination"`
	Description         string              `aws:"Description"`
	DeviceIndex         *int64              `aws:"DeviceIndex"`
	GroupIDs            []string            `aws:"SecurityGroupId,groupSet,groupId"`
	Kind                string              `aws:"InterfaceType"`
	SubnetID            string              `aws:"SubnetId"`
	CardIndex           *int64              `aws:"NetworkCardIndex"`
	IPv4PrefixCount     *int64              `aws:"Ipv4PrefixCount"`
	IPv6PrefixCount     *int64              `aws:"Ipv6PrefixCount"`
	IPv6AddressCount    *int64              `aws:"Ipv6AddressCount"`
	SecondaryIPCount    *int64              `aws:"SecondaryPrivateIpAddressCount"`
	PrimaryIPv6         *bool               `aws:"PrimaryIpv6"`
	ConnectionTracking  *ConnectionTracking `aws:"ConnectionTrackingSpecification"`
}

// ConnectionTracking is the timeouts of tracked connections, in seconds.
type ConnectionTracking struct {
	TCPEstablished *int64 `aws:"TcpEstablishedTimeout"`
	UDPStream      *int64 `aws:"UdpStreamTimeout"`
	UDP            *int64 `aws:"UdpTimeout"`
}

// TagSpecification is the tags for things of one kind that a call makes.
type TagSpecification struct {
	Resource string `aws:"ResourceType"` // "instance", "volume", "fleet"…
	Tags     []Tag  `aws:"Tag,tagSet"`
}

// Tag is a tag on a resource.
type Tag struct {
	Key   string `aws:"Key"`
	Value string `aws:"Value,value,always"`
}

// MetadataOptions is how an instance reads its metadata.
type MetadataOptions struct {
	Tokens       string `aws:"HttpTokens"`
	HopLimit     *int64 `aws:"HttpPutResponseHopLimit"`
	Endpoint     string `aws:"HttpEndpoint"`
	IPv6         string `aws:"HttpProtocolIpv6"`
	InstanceTags string `aws:"InstanceMetadataTags"`
}

// Switch is something that is on or off.
type Switch struct {
	Enabled *bool `aws:"Enabled"`
}

// Placement is where an instance is put.
type Placement struct {
	Zone      string `aws:"AvailabilityZone"`
	ZoneID    string `aws:"AvailabilityZoneId"`
	Tenancy   string `aws:"Tenancy"`
	GroupName string `aws:"GroupName"`
	GroupID   string `aws:"GroupId"`
	Partition *int64 `aws:"PartitionNumber"`
}

// CPUOptions is how an instance uses its processor.
type CPUOptions struct {
	Cores                *int64 `aws:"CoreCount"`
	ThreadsPerCore       *int64 `aws:"ThreadsPerCore"`
	SEVSNP               string `aws:"AmdSevSnp"`
	NestedVirtualization string `aws:"NestedVirtualization"`
}

// ReservationOptions says which capacity reservations may be used.
type ReservationOptions struct {
	Preference string             `aws:"CapacityReservationPreference"`
	Target     *ReservationTarget `aws:"CapacityReservationTarget"`
}

// ReservationTarget is one capacity reservation, or a group of them.
type ReservationTarget struct {
	ID       string `aws:"CapacityReservationId"`
	GroupARN string `aws:"CapacityReservationResourceGroupArn"`
}

// MarketOptions are the market options of an instance that is not on-demand.
type MarketOptions struct {
	Kind string       `aws:"MarketType"` // "spot", "capacity-block"
	Spot *SpotOptions `aws:"SpotOptions"`
}

// SpotOptions are the market options of a spot instance.
type SpotOptions struct {
	MaxPrice     string `aws:"MaxPrice"` // dollars per hour
	Kind         string `aws:"SpotInstanceType"`
	Interruption string `aws:"InstanceInterruptionBehavior"`
}

// PrivateDNSOptions is how the instance is named.
type PrivateDNSOptions struct {
	HostnameType string `aws:"HostnameType"`
	RecordA      *bool  `aws:"EnableResourceNameDnsARecord"`
	RecordAAAA   *bool  `aws:"EnableResourceNameDnsAAAARecord"`
}

// CreditOptions is how a burstable instance is charged.
type CreditOptions struct {
	CPUCredits string `aws:"CpuCredits"`
}

// maxUserData is the most bytes of user data, before base64.
const maxUserData = 16384

// checkUserData refuses user data that EC2 would refuse, with the code that a launch
// template gets for it, or that RunInstances does.
func (d TemplateData) checkUserData(tooLong string) error {
	raw, err := base64.StdEncoding.DecodeString(d.UserData)
	if err != nil {
		return failure.New("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(raw) > maxUserData {
		return failure.New(tooLong, "User data is limited to %d bytes", maxUserData)
	}
	return nil
}

// userData returns the user data as the instance reads it.
func (d TemplateData) userData() string {
	raw, err := base64.StdEncoding.DecodeString(d.UserData)
	if err != nil {
		return d.UserData
	}
	return string(raw)
}

// metadata returns the metadata options, with EC2's defaults for what is not set.
func (d TemplateData) metadata() MetadataOptions {
	m := MetadataOptions{}
	if d.MetadataOptions != nil {
		m = *d.MetadataOptions
	}
	m.Tokens = cmp.Or(m.Tokens, "optional")
	m.Endpoint = cmp.Or(m.Endpoint, "enabled")
	m.IPv6 = cmp.Or(m.IPv6, "disabled")
	m.InstanceTags = cmp.Or(m.InstanceTags, "disabled")
	if m.HopLimit == nil {
		one := int64(1)
		m.HopLimit = &one
	}
	return m
}

// publicAddress says whether an interface asks for a public address.
func (d TemplateData) publicAddress() bool {
	for _, i := range d.Interfaces {
		if i.PublicIP != nil && *i.PublicIP {
			return true
		}
	}
	return false
}
