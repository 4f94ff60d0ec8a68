package ec2

import (
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/aws"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Blueprint is the content of a launch template: everything about an instance except type, zone and subnet. Two equal
// blueprints share a template.
type Blueprint struct {
	ImageID        string   // "ami-0123"
	UserData       []byte   // plain; the client encodes it in base64
	Profile        string   // name of the instance profile
	SecurityGroups []string // IDs
	CapacityType   string   // catalog.OnDemand, Spot or Reserved
	Disks          []Disk   // EBS volumes; empty: the image's volumes
	Metadata       Metadata // options of the instance metadata service

	// Reservation is the capacity reservation to launch into, set only if CapacityType is catalog.Reserved.
	Reservation ReservationRef
	// Unreserved prevents EC2 from launching an on-demand instance into a matching open reservation. If false, EC2 uses
	// a matching open reservation.
	Unreserved bool

	Monitoring           bool         // detailed monitoring, once a minute
	PublicIP             *bool        // nil: the subnet's setting
	IPPrefixes           int32        // number of /28 (IPv4) or /80 (IPv6) prefixes of each interface with addresses
	IPv6                 bool         // the cluster uses IPv6 addresses
	Tenancy              string       // "default" or "dedicated"; empty: default
	Placement            PlacementRef // placement group; zero: none
	NestedVirtualization string       // "enabled" or "disabled"; empty: the type's default
	Interfaces           []Interface  // empty: one interface on the first card
	Tracking             Tracking     // timeouts of idle connections
}

// ReservationRef names a capacity reservation, with the facts that a launch request must state. The zero value means no
// reservation.
type ReservationRef struct {
	ID            string // "cr-0123…"
	Block         bool   // a capacity block
	Interruptible bool   // EC2 may reclaim its instances
}

// Disk is an EBS volume. A nil pointer means EC2's default.
type Disk struct {
	Device              string // "/dev/xvda"
	GiB                 int32  // 0: the size of the snapshot
	Type                string // "gp3"
	IOPS, Throughput    *int32 // Throughput in MiB/s
	Encrypted           *bool  // whether EBS encrypts the volume
	KMSKey              string // ID, alias or ARN; empty: EC2's default
	Snapshot            string // "snap-0123"; empty: no snapshot
	InitializationRate  *int32 // MiB/s
	DeleteOnTermination *bool  // of the instance
}

// Metadata configures the instance metadata service.
type Metadata struct {
	Endpoint string // "enabled" or "disabled"
	IPv6     string // "enabled" or "disabled"; empty where the region does not support the option
	HopLimit int32  // 1..64
	Tokens   string // "required" or "optional"
}

// Interface is a network interface.
type Interface struct {
	Card, Device int32  // index of the network card, and of the device on the card
	Type         string // "interface", "efa" or, without addresses, "efa-only"
}

// Tracking holds the idle timeouts of connection tracking, in seconds.
type Tracking struct {
	TCPEstablished, UDPStream, UDP *int32 // nil: EC2's default
}

// templateData returns the template's content. tags are for the interfaces and the spot request. The instance and its
// volumes get other tags, which include the claim's name, from CreateFleet.
func (b Blueprint) templateData(tags map[string]string) *awstypes.RequestLaunchTemplateData {
	data := &awstypes.RequestLaunchTemplateData{
		ImageId:             textOrNil(b.ImageID),
		UserData:            textOrNil(base64.StdEncoding.EncodeToString(b.UserData)),
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
	b.setReservations(data)
	b.setPlacement(data)
	if b.NestedVirtualization != "" {
		data.CpuOptions = &awstypes.LaunchTemplateCpuOptionsRequest{
			NestedVirtualization: awstypes.NestedVirtualizationSpecification(b.NestedVirtualization)}
	}
	return data
}

func (b Blueprint) setReservations(data *awstypes.RequestLaunchTemplateData) {
	switch {
	case b.Reservation.ID != "":
		data.CapacityReservationSpecification = &awstypes.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: awstypes.CapacityReservationPreferenceCapacityReservationsOnly,
			CapacityReservationTarget:     &awstypes.CapacityReservationTarget{CapacityReservationId: aws.String(b.Reservation.ID)},
		}
		if marketType := b.Reservation.marketType(); marketType != "" {
			data.InstanceMarketOptions = &awstypes.LaunchTemplateInstanceMarketOptionsRequest{MarketType: marketType}
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
			KmsKeyId: textOrNil(d.KMSKey), SnapshotId: textOrNil(d.Snapshot), VolumeInitializationRate: d.InitializationRate,
			DeleteOnTermination: d.DeleteOnTermination,
		}
		if d.GiB > 0 {
			ebs.VolumeSize = aws.Int32(d.GiB)
		}
		out = append(out, awstypes.LaunchTemplateBlockDeviceMappingRequest{DeviceName: textOrNil(d.Device), Ebs: ebs})
	}
	return out
}

// interfaces returns the template's network interfaces: at least one, because security groups and the public address
// are fields of an interface.
func (b Blueprint) interfaces() []awstypes.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	wanted := b.Interfaces
	if len(wanted) == 0 {
		wanted = []Interface{{}}
	}
	var out []awstypes.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest
	for _, w := range wanted {
		nic := awstypes.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			DeviceIndex: aws.Int32(w.Device), InterfaceType: textOrNil(w.Type), Groups: b.SecurityGroups,
		}
		if w.Card > 0 { // EC2 may reject a card index for types with one card
			nic.NetworkCardIndex = aws.Int32(w.Card)
		}
		if w.Type != "efa-only" {
			b.setAddresses(&nic)
		}
		out = append(out, nic)
	}
	return out
}

// setAddresses sets the fields that only an interface with IP addresses may have.
func (b Blueprint) setAddresses(nic *awstypes.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest) {
	if len(b.Interfaces) <= 1 || b.PublicIP != nil && *b.PublicIP {
		// With several interfaces EC2 assigns no public address and rejects this field, so the value false is left out.
		// The value true stays, so that EC2 rejects a launch that cannot have the required address.
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

// textOrNil returns nil for an empty string, because EC2 rejects an empty parameter.
func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return aws.String(s)
}
