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
	groupNames := securityGroupNames(c)
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
				RouteTableIds: e.RouteTableIDs, SubnetIds: e.SubnetIDs, Groups: groupRefs(e.GroupIDs, groupNames),
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
	groupNames := securityGroupNames(c)
	var all []attachedItem[world.NetworkInterface]
	for _, i := range c.Region.Instances.Visible(c.Now) {
		for _, n := range i.Interfaces {
			all = append(all, attachedItem[world.NetworkInterface]{i, n})
		}
	}
	found, next, err := list(in.listIn, listing[attachedItem[world.NetworkInterface], networkInterface]{
		items: all,
		ids:   in.NetworkInterfaceIds,
		id:    func(a attachedItem[world.NetworkInterface]) string { return a.item.ID },
		code:  "InvalidNetworkInterfaceID.NotFound",
		filterable: func(a attachedItem[world.NetworkInterface]) api.Filterable {
			return api.Filterable{Tags: a.item.Tags, Values: map[string][]string{
				"network-interface-id": {a.item.ID}, "subnet-id": {a.item.SubnetID}, "vpc-id": {a.instance.VPCID},
				"group-id": a.item.SecurityGroupIDs, "attachment.instance-id": {a.instance.ID}, "private-ip-address": {a.item.PrivateIP},
				"status": {"in-use"}, "interface-type": {a.item.Kind},
			}}
		},
		write: func(a attachedItem[world.NetworkInterface]) networkInterface {
			return networkInterface{
				NetworkInterfaceId: a.item.ID,
				SubnetId:           a.item.SubnetID,
				VpcId:              a.instance.VPCID,
				AvailabilityZone:   a.instance.Zone,
				OwnerId:            a.instance.Account,
				Status:             "in-use",
				InterfaceType:      a.item.Kind,
				PrivateIpAddress:   a.item.PrivateIP,
				PrivateDnsName:     a.item.PrivateDNSName,
				Groups:             groupRefs(a.item.SecurityGroupIDs, groupNames),
				Tags:               api.TagList(a.item.Tags),
				Attachment: instanceAttachment{
					InstanceId:       a.instance.ID,
					InstanceOwnerId:  a.instance.Account,
					DeviceIndex:      a.item.Device,
					NetworkCardIndex: a.item.Card,
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
		items: all, ids: in.VolumeIds, id: func(a attachedItem[world.Volume]) string { return a.item.ID }, code: "InvalidVolume.NotFound",
		filterable: func(a attachedItem[world.Volume]) api.Filterable {
			return api.Filterable{Tags: a.item.Tags, Values: map[string][]string{
				"volume-id": {a.item.ID}, "status": {"in-use"}, "attachment.instance-id": {a.instance.ID},
				"attachment.device": {a.item.Device}, "availability-zone": {a.instance.Zone}, "volume-type": {a.item.Kind},
				"encrypted": api.BoolValues(a.item.Encrypted),
			}}
		},
		write: func(a attachedItem[world.Volume]) volume {
			return volume{
				VolumeId: a.item.ID, Size: a.item.SizeGiB, AvailabilityZone: a.instance.Zone, Status: "in-use",
				CreateTime: a.instance.LaunchedAt, VolumeType: a.item.Kind, Encrypted: a.item.Encrypted, Tags: api.TagList(a.item.Tags),
				Attachments: []volumeAttachment{{
					VolumeId: a.item.ID, InstanceId: a.instance.ID, Device: a.item.Device, Status: "attached",
					AttachTime: a.instance.LaunchedAt, DeleteOnTermination: a.item.DeleteOnTermination,
				}},
			}
		},
	})
	return describeVolumesOut{Volumes: found, NextToken: next}, err
}
