package ec2

import (
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// reservation has the instances that one call launched. It is not a capacity reservation.
type reservation struct {
	ReservationId string
	OwnerId       string
	Groups        []groupRef `aws:"GroupSet"`
	Instances     []instance `aws:"InstancesSet"`
}

// groupRef is a security group of an instance, a network interface or a VPC endpoint.
type groupRef struct {
	GroupId   string
	GroupName string
}

type instance struct {
	InstanceId            string
	ImageId               string
	InstanceState         instanceState
	PrivateDnsName        string `aws:",,always"`
	DnsName               string `aws:",,always"`
	Reason                string `aws:",,always"`
	StateReason           *stateReason
	AmiLaunchIndex        int64
	InstanceType          string
	LaunchTime            time.Time
	Placement             placement
	Monitoring            monitoring
	SubnetId              string
	VpcId                 string
	PrivateIpAddress      string
	IpAddress             string
	Ipv6Address           string
	SourceDestCheck       bool
	Groups                []groupRef `aws:"GroupSet"`
	Architecture          string
	RootDeviceType        string
	RootDeviceName        string
	BlockDevices          []blockDevice `aws:"BlockDeviceMapping"`
	VirtualizationType    string
	ClientToken           string      `aws:",,always"`
	Tags                  []world.Tag `aws:"TagSet"`
	Hypervisor            string
	NetworkInterfaces     []attachedInterface `aws:"NetworkInterfaceSet"`
	IamInstanceProfile    *profileRef
	InstanceLifecycle     string
	SpotInstanceRequestId string
	EbsOptimized          bool
	EnaSupport            bool
	CpuOptions            cpuOptions
	MetadataOptions       metadataOptions
	PlatformDetails       string
	UsageOperation        string

	CapacityReservationId            string
	CapacityReservationSpecification reservationSpec
}

// reservationSpec has the launch parameters of an instance that concern capacity reservations.
type reservationSpec struct {
	CapacityReservationPreference string
	CapacityReservationTarget     *reservationTarget
}

type reservationTarget struct {
	CapacityReservationId string
}

type instanceState struct {
	Code int64
	Name string
}

type stateReason struct {
	Code    string
	Message string
}

type placement struct {
	AvailabilityZone   string
	AvailabilityZoneId string
	GroupName          string `aws:",,always"`
	GroupId            string
	PartitionNumber    int64
	Tenancy            string
}

type monitoring struct {
	State string
}

type blockDevice struct {
	DeviceName string
	Ebs        attachedVolume
}

type attachedVolume struct {
	VolumeId            string
	Status              string
	AttachTime          time.Time
	DeleteOnTermination bool
}

type attachedInterface struct {
	NetworkInterfaceId string
	SubnetId           string
	VpcId              string
	OwnerId            string
	Status             string
	InterfaceType      string
	PrivateIpAddress   string
	PrivateDnsName     string
	SourceDestCheck    bool
	Groups             []groupRef `aws:"GroupSet"`
	Attachment         interfaceAttachment
	PrivateIpAddresses []privateAddress `aws:"PrivateIpAddressesSet"`
	Ipv6Addresses      []ipv6Address    `aws:"Ipv6AddressesSet"`
	Ipv4Prefixes       []ipv4Prefix     `aws:"Ipv4PrefixSet"`
	Ipv6Prefixes       []ipv6Prefix     `aws:"Ipv6PrefixSet"`
}

type ipv6Address struct {
	Ipv6Address   string
	IsPrimaryIpv6 bool
}

type ipv4Prefix struct{ Ipv4Prefix string }

type ipv6Prefix struct{ Ipv6Prefix string }

type interfaceAttachment struct {
	AttachmentId        string
	DeviceIndex         int64
	NetworkCardIndex    int64
	Status              string
	AttachTime          time.Time
	DeleteOnTermination bool
}

type privateAddress struct {
	PrivateIpAddress string
	PrivateDnsName   string
	Primary          bool
}

type profileRef struct {
	Arn string
	Id  string
}

type cpuOptions struct {
	CoreCount      int64
	ThreadsPerCore int64
}

type metadataOptions struct {
	State                   string
	HttpTokens              string
	HttpPutResponseHopLimit int64
	HttpEndpoint            string
	HttpProtocolIpv6        string
	InstanceMetadataTags    string
}

// stateOf returns an instance state in EC2's wire format: the name with its code.
func stateOf(name string) instanceState {
	codes := map[string]int64{world.Pending: 0, world.Running: 16, world.ShuttingDown: 32, world.Terminated: 48}
	return instanceState{Code: codes[name], Name: name}
}

// securityGroupNames returns the names of the region's security groups by id.
func securityGroupNames(c *api.Call) map[string]string {
	groupNames := map[string]string{}
	for _, g := range c.Region.Network.SecurityGroups() {
		groupNames[g.ID] = g.Name
	}
	return groupNames
}

func instanceOf(c *api.Call, i world.Instance, groupNames map[string]string) instance {
	stock, _ := c.World.Market(i.Region).Stock(i.Type)
	out := instance{
		InstanceId: i.ID, ImageId: i.ImageID, InstanceState: stateOf(i.State),
		PrivateDnsName: i.PrivateDNSName, InstanceType: i.Type, LaunchTime: i.LaunchedAt,
		Placement: placement{
			AvailabilityZone: i.Zone, AvailabilityZoneId: i.ZoneID, Tenancy: i.Tenancy,
			GroupName: i.PlacementGroupName, GroupId: i.PlacementGroupID, PartitionNumber: int64(i.Partition),
		},
		Monitoring: monitoring{State: "disabled"}, SubnetId: i.SubnetID, VpcId: i.VPCID,
		PrivateIpAddress: i.PrivateIP, IpAddress: i.PublicIP, Ipv6Address: i.IPv6, SourceDestCheck: true,
		Groups: groupRefs(i.SecurityGroupIDs, groupNames), Architecture: i.Architecture,
		RootDeviceType: "ebs", RootDeviceName: "/dev/xvda", VirtualizationType: "hvm", ClientToken: i.ClientToken,
		Tags: api.TagList(i.Tags), Hypervisor: "xen", SpotInstanceRequestId: i.SpotRequestID,
		EbsOptimized: stock.Facts.EBS.Optimized == "default", EnaSupport: stock.Facts.Network.ENA != "unsupported",
		CpuOptions:      cpuOptions{CoreCount: stock.Facts.Processor.Cores, ThreadsPerCore: stock.Facts.Processor.ThreadsPerCore},
		MetadataOptions: metadataOf(i.Metadata),
		PlatformDetails: "Linux/UNIX", UsageOperation: "RunInstances",
		BlockDevices: []blockDevice{}, NetworkInterfaces: []attachedInterface{},
	}
	out.InstanceLifecycle = i.Market
	if i.Spot {
		out.InstanceLifecycle = "spot"
	}
	out.CapacityReservationId = i.CapacityReservationID
	out.CapacityReservationSpecification.CapacityReservationPreference = api.Or(i.RequestedReservation.Preference, "open")
	if t := i.RequestedReservation.Target; t != nil {
		out.CapacityReservationSpecification.CapacityReservationTarget = &reservationTarget{CapacityReservationId: t.ID}
	}
	if i.ProfileARN != "" {
		out.IamInstanceProfile = &profileRef{Arn: i.ProfileARN, Id: profileIDOf(c, i.ProfileARN)}
	}
	if i.StateReason.Code != "" {
		out.StateReason = &stateReason{Code: i.StateReason.Code, Message: i.StateReason.Message}
		out.Reason = i.StateReason.Message
	}
	for _, v := range i.Volumes {
		out.BlockDevices = append(out.BlockDevices, blockDevice{DeviceName: v.Device, Ebs: attachedVolume{
			VolumeId: v.ID, Status: "attached", AttachTime: i.LaunchedAt, DeleteOnTermination: v.DeleteOnTermination,
		}})
	}
	for _, n := range i.Interfaces {
		out.NetworkInterfaces = append(out.NetworkInterfaces, attachedInterfaceOf(i, n, groupNames))
	}
	return out
}

func profileIDOf(c *api.Call, arn string) string {
	p, err := c.Account().ProfileByARN(arn)
	if err != nil {
		return ""
	}
	return p.ID
}

// attachedInterfaceOf converts a network interface to the wire format that EC2 uses in a list of instances.
func attachedInterfaceOf(i world.Instance, n world.NetworkInterface, groupNames map[string]string) attachedInterface {
	out := attachedInterface{
		NetworkInterfaceId: n.ID, SubnetId: n.SubnetID, VpcId: i.VPCID, OwnerId: i.Account, Status: "in-use",
		InterfaceType: n.Kind, PrivateIpAddress: n.PrivateIP, PrivateDnsName: n.PrivateDNSName, SourceDestCheck: true,
		Groups: groupRefs(n.SecurityGroupIDs, groupNames),
		Attachment: interfaceAttachment{
			AttachmentId: "eni-attach-" + n.ID[len("eni-"):], DeviceIndex: n.Device, NetworkCardIndex: n.Card,
			Status: "attached", AttachTime: i.LaunchedAt, DeleteOnTermination: true,
		},
	}
	if n.PrivateIP != "" {
		out.PrivateIpAddresses = []privateAddress{{PrivateIpAddress: n.PrivateIP, PrivateDnsName: n.PrivateDNSName, Primary: true}}
	}
	for k, a := range n.IPv6 {
		out.Ipv6Addresses = append(out.Ipv6Addresses, ipv6Address{Ipv6Address: a, IsPrimaryIpv6: k == 0 && n.PrimaryIPv6})
	}
	for _, p := range n.Prefixes {
		if strings.Contains(p, ":") {
			out.Ipv6Prefixes = append(out.Ipv6Prefixes, ipv6Prefix{p})
		} else {
			out.Ipv4Prefixes = append(out.Ipv4Prefixes, ipv4Prefix{p})
		}
	}
	return out
}

func groupRefs(ids []string, groupNames map[string]string) []groupRef {
	out := make([]groupRef, len(ids))
	for i, id := range ids {
		out[i] = groupRef{GroupId: id, GroupName: groupNames[id]}
	}
	return out
}

func metadataOf(m world.MetadataOptions) metadataOptions {
	out := metadataOptions{
		State: "applied", HttpTokens: m.Tokens, HttpEndpoint: m.Endpoint,
		HttpProtocolIpv6: m.IPv6, InstanceMetadataTags: m.InstanceTags,
	}
	if m.HopLimit != nil {
		out.HttpPutResponseHopLimit = *m.HopLimit
	}
	return out
}
