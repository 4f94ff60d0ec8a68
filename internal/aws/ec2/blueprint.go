package ec2

import (
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/aws"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Blueprint is what goes into a launch template: everything about an instance
// but its type, its zone and its subnet. Two equal ones share a template.
type Blueprint struct {
	ImageID        string   // "ami-0123"
	UserData       []byte   // as the instance reads it; the client encodes it in base64
	Profile        string   // name of the instance profile
	SecurityGroups []string // IDs
	CapacityType   string   // catalog.OnDemand, Spot or Reserved
	Disks          []Disk   // EBS volumes; empty: those of the image
	Metadata       Metadata // options of the instance metadata service

	// Reservation is the capacity reservation to run in; only if CapacityType is catalog.Reserved. Unreserved keeps an
	// instance on demand out of open reservations, which EC2 uses unasked otherwise.
	Reservation ReservationRef
	Unreserved  bool

	Monitoring           bool         // detailed, each minute
	PublicIP             *bool        // nil: as the subnet says
	IPPrefixes           int32        // of the first interface: /28 for IPv4, /80 for IPv6
	IPv6                 bool         // the cluster's addresses are IPv6
	Tenancy              string       // "default" or "dedicated"; empty: default
	Placement            PlacementRef // placement group; zero: none
	NestedVirtualization string       // "enabled" or "disabled"; empty: the type's default
	Interfaces           []Interface  // none: one interface on the first card
	Tracking             Tracking     // timeouts of idle connections
}

// ReservationRef names a capacity reservation, with what a launch into it must say. Its zero value names none.
type ReservationRef struct {
	ID            string // "cr-0123…"
	Block         bool   // a capacity block
	Interruptible bool   // EC2 may reclaim its instances
}

// Disk is an EBS volume. Pointers that are nil leave it to EC2.
type Disk struct {
	Device              string // "/dev/xvda"
	GiB                 int32  // 0: as large as its snapshot
	Type                string // "gp3"
	IOPS, Throughput    *int32 // Throughput in MiB/s
	Encrypted           *bool  // nil: EC2's default
	KMSKey              string // ID, alias or ARN; empty: EC2's default
	Snapshot            string // "snap-0123"; empty: not set
	InitializationRate  *int32 // MiB/s
	DeleteOnTermination *bool  // nil: EC2's default
}

// Metadata is how the instance may reach its metadata service.
type Metadata struct {
	Endpoint string // "enabled" or "disabled"
	IPv6     string // "enabled" or "disabled"; empty where the region does not know it
	HopLimit int32  // 1..64
	Tokens   string // "required" or "optional"
}

// Interface is a network interface. None: one, on the first card.
type Interface struct {
	Card, Device int32  // index of the network card, and of the device on it
	Type         string // "interface", "efa" or, without addresses, "efa-only"
}

// Tracking is how long, in seconds, idle connections are remembered; nil: EC2's default.
type Tracking struct {
	TCPEstablished, UDPStream, UDP *int32 // each nil: EC2's default
}

// data returns the template's content. Tags go onto the interfaces; the instance and its
// volumes get theirs from CreateFleet, where they carry the claim's name too.
func (b Blueprint) data(tags map[string]string) *awstypes.RequestLaunchTemplateData {
	data := &awstypes.RequestLaunchTemplateData{
		ImageId:             text(b.ImageID),
		UserData:            text(base64.StdEncoding.EncodeToString(b.UserData)),
		Monitoring:          &awstypes.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(b.Monitoring)},
		BlockDeviceMappings: b.disks(),
		NetworkInterfaces:   b.interfaces(),
		MetadataOptions:     b.Metadata.options(),
		TagSpecifications: []awstypes.LaunchTemplateTagSpecificationRequest{
			{ResourceType: awstypes.ResourceTypeNetworkInterface, Tags: toTags(tags)},
		},
	}
	if b.Profile != "" {
		data.IamInstanceProfile = &awstypes.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String(b.Profile)}
	}
	if b.CapacityType == catalog.Spot {
		data.TagSpecifications = append(data.TagSpecifications, awstypes.LaunchTemplateTagSpecificationRequest{
			ResourceType: awstypes.ResourceTypeSpotInstancesRequest, Tags: toTags(tags)})
	}
	b.reserve(data)
	b.place(data)
	if b.NestedVirtualization != "" {
		data.CpuOptions = &awstypes.LaunchTemplateCpuOptionsRequest{
			NestedVirtualization: awstypes.NestedVirtualizationSpecification(b.NestedVirtualization)}
	}
	return data
}

// reserve says which capacity reservations the instance may run in.
func (b Blueprint) reserve(data *awstypes.RequestLaunchTemplateData) {
	switch {
	case b.Reservation.ID != "":
		data.CapacityReservationSpecification = &awstypes.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: awstypes.CapacityReservationPreferenceCapacityReservationsOnly,
			CapacityReservationTarget:     &awstypes.CapacityReservationTarget{CapacityReservationId: aws.String(b.Reservation.ID)},
		}
		if market := b.Reservation.market(); market != "" {
			data.InstanceMarketOptions = &awstypes.LaunchTemplateInstanceMarketOptionsRequest{MarketType: market}
		}
	case b.Unreserved && b.CapacityType == catalog.OnDemand:
		data.CapacityReservationSpecification = &awstypes.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: awstypes.CapacityReservationPreferenceNone,
		}
	}
}

func (b Blueprint) disks() []awstypes.LaunchTemplateBlockDeviceMappingRequest {
	var out []awstypes.LaunchTemplateBlockDeviceMappingRequest
	for _, d := range b.Disks {
		ebs := &awstypes.LaunchTemplateEbsBlockDeviceRequest{
			VolumeType: awstypes.VolumeType(d.Type), Iops: d.IOPS, Throughput: d.Throughput, Encrypted: d.Encrypted,
			KmsKeyId: text(d.KMSKey), SnapshotId: text(d.Snapshot), VolumeInitializationRate: d.InitializationRate,
			DeleteOnTermination: d.DeleteOnTermination,
		}
		if d.GiB > 0 {
			ebs.VolumeSize = aws.Int32(d.GiB)
		}
		out = append(out, awstypes.LaunchTemplateBlockDeviceMappingRequest{DeviceName: text(d.Device), Ebs: ebs})
	}
	return out
}

// interfaces spells out at least the first one: security groups and public address go there.
func (b Blueprint) interfaces() []awstypes.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	wanted := b.Interfaces
	if len(wanted) == 0 {
		wanted = []Interface{{}}
	}
	var out []awstypes.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest
	for _, w := range wanted {
		nic := awstypes.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			DeviceIndex: aws.Int32(w.Device), InterfaceType: text(w.Type), Groups: b.SecurityGroups,
		}
		if w.Card > 0 { // types with one card may refuse to have it named
			nic.NetworkCardIndex = aws.Int32(w.Card)
		}
		if w.Type != "efa-only" {
			b.address(&nic)
		}
		out = append(out, nic)
	}
	return out
}

// address sets what only an interface with IP addresses can have.
func (b Blueprint) address(nic *awstypes.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest) {
	if len(b.Interfaces) <= 1 || b.PublicIP != nil && *b.PublicIP {
		// With several interfaces there is no public address anyway, and EC2 takes no word about it.
		nic.AssociatePublicIpAddress = b.PublicIP
	}
	if b.IPv6 {
		nic.PrimaryIpv6, nic.Ipv6AddressCount = aws.Bool(true), aws.Int32(1)
	}
	switch {
	case b.IPPrefixes > 0 && b.IPv6:
		nic.Ipv6PrefixCount = aws.Int32(b.IPPrefixes)
	case b.IPPrefixes > 0:
		nic.Ipv4PrefixCount = aws.Int32(b.IPPrefixes)
	}
	if t := b.Tracking; t != (Tracking{}) {
		nic.ConnectionTrackingSpecification = &awstypes.ConnectionTrackingSpecificationRequest{
			TcpEstablishedTimeout: t.TCPEstablished, UdpStreamTimeout: t.UDPStream, UdpTimeout: t.UDP}
	}
}

func (m Metadata) options() *awstypes.LaunchTemplateInstanceMetadataOptionsRequest {
	o := &awstypes.LaunchTemplateInstanceMetadataOptionsRequest{
		HttpEndpoint:         awstypes.LaunchTemplateInstanceMetadataEndpointState(m.Endpoint),
		HttpTokens:           awstypes.LaunchTemplateHttpTokensState(m.Tokens),
		HttpProtocolIpv6:     awstypes.LaunchTemplateInstanceMetadataProtocolIpv6(m.IPv6),
		InstanceMetadataTags: awstypes.LaunchTemplateInstanceMetadataTagsStateDisabled,
	}
	if m.HopLimit > 0 {
		o.HttpPutResponseHopLimit = aws.Int32(m.HopLimit)
	}
	return o
}

// text returns nil for an empty string: EC2 takes an empty parameter for a wrong one.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return aws.String(s)
}
