package ec2

import (
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

type describeEndpointsIn struct {
	VpcEndpointIds []string `aws:"VpcEndpointId"`
	listIn
}

type describeEndpointsOut struct {
	VpcEndpoints []endpoint `aws:"VpcEndpointSet"`
	NextToken    string
}

type endpoint struct {
	VpcEndpointId     string
	VpcEndpointType   string
	VpcId             string
	ServiceName       string
	State             string
	RouteTableIds     []string   `aws:"RouteTableIdSet"`
	SubnetIds         []string   `aws:"SubnetIdSet"`
	Groups            []groupRef `aws:"GroupSet"`
	PrivateDnsEnabled bool
	OwnerId           string
	Tags              []world.Tag `aws:"TagSet"`
}

func describeVpcEndpoints(c *api.Call, in *describeEndpointsIn) (describeEndpointsOut, error) {
	names := securityGroupNames(c)
	found, next, err := list(in.listIn, listing[*network.Endpoint, endpoint]{
		items: c.Region.Network.Endpoints(),
		ids:   in.VpcEndpointIds,
		id:    func(e *network.Endpoint) string { return e.ID },
		code:  "InvalidVpcEndpointId.NotFound",
		filterable: func(e *network.Endpoint) api.Filterable {
			if e == nil {
				e = &network.Endpoint{}
			}
			return api.Filterable{Tags: e.Tags, Values: map[string][]string{
				"vpc-endpoint-id": {e.ID}, "vpc-id": {e.VPCID}, "service-name": {e.Service},
				"vpc-endpoint-type": {e.Kind}, "vpc-endpoint-state": {"available"},
			}}
		},
		write: func(e *network.Endpoint) endpoint {
			return endpoint{
				VpcEndpointId: e.ID, VpcEndpointType: e.Kind, VpcId: e.VPCID, ServiceName: e.Service, State: "available",
				RouteTableIds: e.RouteTableIDs, SubnetIds: e.SubnetIDs, Groups: groupRefs(e.GroupIDs, names),
				PrivateDnsEnabled: e.Kind == "Interface", OwnerId: c.Caller.Account, Tags: api.TagList(e.Tags),
			}
		},
	})
	return describeEndpointsOut{VpcEndpoints: found, NextToken: next}, err
}

type describeInterfacesIn struct {
	NetworkInterfaceIds []string `aws:"NetworkInterfaceId"`
	listIn
}

type describeInterfacesOut struct {
	NetworkInterfaces []networkInterface `aws:"NetworkInterfaceSet"`
	NextToken         string
}

type networkInterface struct {
	NetworkInterfaceId string
	SubnetId           string
	VpcId              string
	AvailabilityZone   string
	OwnerId            string
	Status             string
	InterfaceType      string
	PrivateIpAddress   string
	PrivateDnsName     string
	Groups             []groupRef `aws:"GroupSet"`
	Attachment         instanceAttachment
	Tags               []world.Tag `aws:"TagSet"`
}

// instanceAttachment is the attachment of a network interface to an instance, in the wire format of EC2.
type instanceAttachment struct {
	InstanceId       string
	InstanceOwnerId  string
	DeviceIndex      int64
	NetworkCardIndex int64
	Status           string
}

// attachedItem is a network interface or a volume, with the instance to which it is attached.
type attachedItem[T any] struct {
	instance world.Instance
	item     T
}

func describeNetworkInterfaces(c *api.Call, in *describeInterfacesIn) (describeInterfacesOut, error) {
	names := securityGroupNames(c)
	var all []attachedItem[world.NetworkInterface]
	for _, i := range c.Region.Instances.Visible(c.Now) {
		for _, n := range i.Interfaces {
			all = append(all, attachedItem[world.NetworkInterface]{i, n})
		}
	}
	found, next, err := list(in.listIn, listing[attachedItem[world.NetworkInterface], networkInterface]{
		items: all,
		ids:   in.NetworkInterfaceIds,
		id:    func(p attachedItem[world.NetworkInterface]) string { return p.item.ID },
		code:  "InvalidNetworkInterfaceID.NotFound",
		filterable: func(p attachedItem[world.NetworkInterface]) api.Filterable {
			return api.Filterable{Tags: p.item.Tags, Values: map[string][]string{
				"network-interface-id": {p.item.ID}, "subnet-id": {p.item.SubnetID}, "vpc-id": {p.instance.VPCID}, "group-id": p.item.SecurityGroupIDs,
				"attachment.instance-id": {p.instance.ID}, "private-ip-address": {p.item.PrivateIP},
				"status": {"in-use"}, "interface-type": {p.item.Kind},
			}}
		},
		write: func(p attachedItem[world.NetworkInterface]) networkInterface {
			return networkInterface{
				NetworkInterfaceId: p.item.ID,
				SubnetId:           p.item.SubnetID,
				VpcId:              p.instance.VPCID,
				AvailabilityZone:   p.instance.Zone,
				OwnerId:            p.instance.Account,
				Status:             "in-use",
				InterfaceType:      p.item.Kind,
				PrivateIpAddress:   p.item.PrivateIP,
				PrivateDnsName:     p.item.PrivateDNSName,
				Groups:             groupRefs(p.item.SecurityGroupIDs, names),
				Tags:               api.TagList(p.item.Tags),
				Attachment: instanceAttachment{
					InstanceId:       p.instance.ID,
					InstanceOwnerId:  p.instance.Account,
					DeviceIndex:      p.item.Device,
					NetworkCardIndex: p.item.Card,
					Status:           "attached",
				},
			}
		},
	})
	return describeInterfacesOut{NetworkInterfaces: found, NextToken: next}, err
}

type describeVolumesIn struct {
	VolumeIds []string `aws:"VolumeId"`
	listIn
}

type describeVolumesOut struct {
	Volumes   []volume `aws:"VolumeSet"`
	NextToken string
}

type volume struct {
	VolumeId         string
	Size             int64
	AvailabilityZone string
	Status           string
	CreateTime       time.Time
	VolumeType       string
	Encrypted        bool
	Attachments      []volumeAttachment `aws:"AttachmentSet"`
	Tags             []world.Tag        `aws:"TagSet"`
}

type volumeAttachment struct {
	VolumeId            string
	InstanceId          string
	Device              string
	Status              string
	AttachTime          time.Time
	DeleteOnTermination bool
}

func describeVolumes(c *api.Call, in *describeVolumesIn) (describeVolumesOut, error) {
	var all []attachedItem[world.Volume]
	for _, i := range c.Region.Instances.Visible(c.Now) {
		for _, v := range i.Volumes {
			all = append(all, attachedItem[world.Volume]{i, v})
		}
	}
	found, next, err := list(in.listIn, listing[attachedItem[world.Volume], volume]{
		items: all, ids: in.VolumeIds, id: func(p attachedItem[world.Volume]) string { return p.item.ID }, code: "InvalidVolume.NotFound",
		filterable: func(p attachedItem[world.Volume]) api.Filterable {
			return api.Filterable{Tags: p.item.Tags, Values: map[string][]string{
				"volume-id": {p.item.ID}, "status": {"in-use"}, "attachment.instance-id": {p.instance.ID}, "attachment.device": {p.item.Device},
				"availability-zone": {p.instance.Zone}, "volume-type": {p.item.Kind}, "encrypted": api.BoolValues(p.item.Encrypted),
			}}
		},
		write: func(p attachedItem[world.Volume]) volume {
			return volume{
				VolumeId: p.item.ID, Size: p.item.SizeGiB, AvailabilityZone: p.instance.Zone, Status: "in-use", CreateTime: p.instance.LaunchedAt,
				VolumeType: p.item.Kind, Encrypted: p.item.Encrypted, Tags: api.TagList(p.item.Tags),
				Attachments: []volumeAttachment{{
					VolumeId: p.item.ID, InstanceId: p.instance.ID, Device: p.item.Device, Status: "attached",
					AttachTime: p.instance.LaunchedAt, DeleteOnTermination: p.item.DeleteOnTermination,
				}},
			}
		},
	})
	return describeVolumesOut{Volumes: found, NextToken: next}, err
}
