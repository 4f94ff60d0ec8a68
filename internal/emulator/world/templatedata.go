package world

import (
	"cmp"
	"encoding/base64"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// TemplateData has the launch parameters of a launch template or of RunInstances. An absent value is nil or empty.
//
// The struct tags with the key aws have up to three parts:
//
//   - the name in EC2's requests;
//   - the name in EC2's answers, by default the first name with a lower-case initial;
//   - the name of the elements of a list, by default "item".
type TemplateData struct {
	ImageID      string      `aws:"ImageId"`            // "ami-0…"
	InstanceType string      `aws:"InstanceType"`       // "m5.large"
	UserData     string      `aws:"UserData"`           // base64
	Profile      *ProfileRef `aws:"IamInstanceProfile"` // instance profile; nil: no role
	// Devices change the image's volumes, and add volumes.
	Devices    []Device        `aws:"BlockDeviceMapping,blockDeviceMappingSet"`
	Interfaces []InterfaceSpec `aws:"NetworkInterface,networkInterfaceSet"` // none: one interface in the subnet of the launch
	// GroupIDs are the ids of security groups in addition to those of Interfaces. If a launch has no groups at all, it
	// uses the VPC's default group.
	GroupIDs        []string            `aws:"SecurityGroupId,securityGroupIdSet"`
	GroupNames      []string            `aws:"SecurityGroup,securityGroupSet"`       // names of further security groups
	Tags            []TagSpecification  `aws:"TagSpecification,tagSpecificationSet"` // tags of the resources that a launch creates
	MetadataOptions *MetadataOptions    `aws:"MetadataOptions"`                      // nil: EC2's defaults
	Monitoring      *Switch             `aws:"Monitoring"`                           // detailed monitoring; nil: off
	Placement       *Placement          `aws:"Placement"`                            // nil: anywhere, on shared hardware
	CPU             *CPUOptions         `aws:"CpuOptions"`                           // nil: all cores and threads
	Reservation     *ReservationOptions `aws:"CapacityReservationSpecification"`     // nil: any open reservation
	Market          *MarketOptions      `aws:"InstanceMarketOptions"`                // nil: on demand
	Enclave         *Switch             `aws:"EnclaveOptions"`                       // Nitro Enclaves; nil: off
	PrivateDNS      *PrivateDNSOptions  `aws:"PrivateDnsNameOptions"`                // nil: the options of the subnet
	Credit          *CreditOptions      `aws:"CreditSpecification"`                  // nil: the default of the type
	KeyName         string              `aws:"KeyName"`                              // SSH key pair; empty: none
	EBSOptimized    *bool               `aws:"EbsOptimized"`                         // nil: the default of the type

	DisableTermination *bool  `aws:"DisableApiTermination"`             // protects from termination; nil: off
	DisableStop        *bool  `aws:"DisableApiStop"`                    // protects from stopping; nil: off
	ShutdownBehavior   string `aws:"InstanceInitiatedShutdownBehavior"` // "stop" or "terminate"; empty: stop
}

// ProfileRef names an instance profile by ARN or by name.
type ProfileRef struct {
	ARN  string `aws:"Arn"`  // empty: Name is set
	Name string `aws:"Name"` // empty: ARN is set
}

// Device is a block device mapping.
type Device struct {
	DeviceName  string      `aws:"DeviceName"`  // "/dev/xvda"
	VirtualName string      `aws:"VirtualName"` // "ephemeral0"; empty: no instance store
	EBS         *VolumeSpec `aws:"Ebs"`         // nil: no EBS volume
	NoDevice    *string     `aws:"NoDevice"`    // not nil: the image's volume with this device name is not created
}

// VolumeSpec is a requested EBS volume.
type VolumeSpec struct {
	Encrypted           *bool  `aws:"Encrypted"`                // nil: the setting of the image
	DeleteOnTermination *bool  `aws:"DeleteOnTermination"`      // nil: true
	IOPS                *int64 `aws:"Iops"`                     // nil: the minimum of the type
	KMSKeyID            string `aws:"KmsKeyId"`                 // ID, ARN or alias; empty: the account's default key
	SnapshotID          string `aws:"SnapshotId"`               // "snap-0…"; empty: the snapshot of the image
	SizeGiB             *int64 `aws:"VolumeSize"`               // nil: the size in the image
	Kind                string `aws:"VolumeType"`               // "gp3"; empty: the type in the image, or else gp2
	Throughput          *int64 `aws:"Throughput"`               // MiB/s; nil: the minimum of the type
	InitializationRate  *int64 `aws:"VolumeInitializationRate"` // MiB/s; nil: no rate is requested
}

// InterfaceSpec is a requested network interface.
type InterfaceSpec struct {
	PublicIP            *bool    `aws:"AssociatePublicIpAddress"`         // nil: the subnet's setting
	DeleteOnTermination *bool    `aws:"DeleteOnTermination"`              // nil: true
	Description         string   `aws:"Description"`                      // free text; empty: none
	DeviceIndex         *int64   `aws:"DeviceIndex"`                      // index of the device on its card, from 0; nil: 0
	GroupIDs            []string `aws:"SecurityGroupId,groupSet,groupId"` // security groups: "sg-0…"
	Kind                string   `aws:"InterfaceType"`                    // "interface", "efa" or "efa-only"; empty: interface
	SubnetID            string   `aws:"SubnetId"`                         // "subnet-0…"; empty: the subnet of the launch
	CardIndex           *int64   `aws:"NetworkCardIndex"`                 // from 0; nil: 0
	IPv4PrefixCount     *int64   `aws:"Ipv4PrefixCount"`                  // /28 blocks; nil: 0
	IPv6PrefixCount     *int64   `aws:"Ipv6PrefixCount"`                  // /80 blocks; nil: 0
	IPv6AddressCount    *int64   `aws:"Ipv6AddressCount"`                 // nil: 0
	SecondaryIPCount    *int64   `aws:"SecondaryPrivateIpAddressCount"`   // further IPv4 addresses; nil: 0; not emulated
	// PrimaryIPv6 makes the first IPv6 address the primary one, which cannot change. nil: false.
	PrimaryIPv6        *bool               `aws:"PrimaryIpv6"`
	ConnectionTracking *ConnectionTracking `aws:"ConnectionTrackingSpecification"` // nil: EC2's defaults
}

// ConnectionTracking has the timeouts of tracked connections, in seconds.
type ConnectionTracking struct {
	TCPEstablished *int64 `aws:"TcpEstablishedTimeout"` // nil: EC2's default
	UDPStream      *int64 `aws:"UdpStreamTimeout"`      // of connections with more than one request and response; nil: EC2's default
	UDP            *int64 `aws:"UdpTimeout"`            // of one request and response; nil: EC2's default
}

// TagSpecification has the tags of the resources of one type that a call creates.
type TagSpecification struct {
	Resource string `aws:"ResourceType"` // "instance", "volume", "fleet"…
	Tags     []Tag  `aws:"Tag,tagSet"`   // each key once
}

// Tag is a tag on a resource.
type Tag struct {
	Key   string `aws:"Key"`                // at most 128 characters
	Value string `aws:"Value,value,always"` // at most 256 characters; may be empty
}

// MetadataOptions has the options of the instance metadata service.
type MetadataOptions struct {
	Tokens       string `aws:"HttpTokens"`              // "required" (IMDSv2 only) or "optional"; empty: optional
	HopLimit     *int64 `aws:"HttpPutResponseHopLimit"` // maximum number of network hops of an answer; nil: 1
	Endpoint     string `aws:"HttpEndpoint"`            // "enabled" or "disabled"; empty: enabled
	IPv6         string `aws:"HttpProtocolIpv6"`        // "enabled" or "disabled"; empty: disabled
	InstanceTags string `aws:"InstanceMetadataTags"`    // "enabled" or "disabled"; empty: disabled
}

// Switch enables or disables a feature.
type Switch struct {
	Enabled *bool `aws:"Enabled"` // nil: off
}

// Placement has the placement parameters of an instance.
type Placement struct {
	Zone      string `aws:"AvailabilityZone"`   // "us-east-1a"; empty: any
	ZoneID    string `aws:"AvailabilityZoneId"` // "use1-az1"; empty: any
	Tenancy   string `aws:"Tenancy"`            // TenancyDefault or TenancyDedicated; empty: default
	GroupName string `aws:"GroupName"`          // placement group; empty: GroupID is set, or no group
	GroupID   string `aws:"GroupId"`            // "pg-0…"; empty: GroupName is set, or no group
	Partition *int64 `aws:"PartitionNumber"`    // of the group, from 1; nil: any
}

// CPUOptions has the processor options of an instance.
type CPUOptions struct {
	Cores                *int64 `aws:"CoreCount"`            // nil: all
	ThreadsPerCore       *int64 `aws:"ThreadsPerCore"`       // 1 or 2; nil: the default of the type
	SEVSNP               string `aws:"AmdSevSnp"`            // AMD SEV-SNP: "enabled" or "disabled"; empty: disabled
	NestedVirtualization string `aws:"NestedVirtualization"` // "enabled" or "disabled"; empty: disabled
}

// ReservationOptions selects the capacity reservations that a launch may use.
type ReservationOptions struct {
	Preference string             `aws:"CapacityReservationPreference"` // "open", NeverReserved or OnlyReserved; empty: open
	Target     *ReservationTarget `aws:"CapacityReservationTarget"`     // nil: no particular reservation
}

// ReservationTarget names a capacity reservation, or a group of reservations.
type ReservationTarget struct {
	ID       string `aws:"CapacityReservationId"`               // "cr-0…"; empty: GroupARN is set
	GroupARN string `aws:"CapacityReservationResourceGroupArn"` // ARN of a resource group; empty: ID is set
}

// MarketOptions are the market options of an instance that is not on-demand.
type MarketOptions struct {
	Kind string       `aws:"MarketType"`  // "spot", MarketBlock or MarketInterruptible
	Spot *SpotOptions `aws:"SpotOptions"` // nil: EC2's defaults
}

// SpotOptions are the market options of a spot instance.
type SpotOptions struct {
	MaxPrice     string `aws:"MaxPrice"`                     // dollars per hour
	Kind         string `aws:"SpotInstanceType"`             // "one-time" or "persistent"; empty: one-time
	Interruption string `aws:"InstanceInterruptionBehavior"` // "terminate", "stop" or "hibernate"; empty: terminate
}

// PrivateDNSOptions has the options for the hostname of an instance.
type PrivateDNSOptions struct {
	HostnameType string `aws:"HostnameType"`                    // "ip-name" or "resource-name"; empty: the subnet's setting
	RecordA      *bool  `aws:"EnableResourceNameDnsARecord"`    // the resource name resolves to IPv4; nil: the subnet's setting
	RecordAAAA   *bool  `aws:"EnableResourceNameDnsAAAARecord"` // the resource name resolves to IPv6; nil: the subnet's setting
}

// CreditOptions has the CPU credit option of a burstable instance.
type CreditOptions struct {
	CPUCredits string `aws:"CpuCredits"` // "standard" or "unlimited"
}

// maxUserData is the maximum number of bytes of user data, before base64 encoding.
const maxUserData = 16384

// checkUserData returns EC2's error for invalid user data. tooLong is the error code for user data that is too long;
// the code depends on the call.
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

// userData returns the decoded user data, or UserData itself if it is not valid base64.
func (d TemplateData) userData() string {
	raw, err := base64.StdEncoding.DecodeString(d.UserData)
	if err != nil {
		return d.UserData
	}
	return string(raw)
}

// metadata returns the metadata options, with EC2's defaults for options that are not set.
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

func (d TemplateData) requestsPublicIP() bool {
	for _, i := range d.Interfaces {
		if i.PublicIP != nil && *i.PublicIP {
			return true
		}
	}
	return false
}
