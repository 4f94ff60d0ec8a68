package ec2

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// listIn has the parameters that most describe calls share.
type listIn struct {
	Filters []api.Filter `aws:"Filter"`
	api.Paged
}

// selectByID returns the items with the given ids, or all items if there are no ids. An unknown id is an error with the
// given code. id returns the id of an item.
func selectByID[T any](items []T, ids []string, id func(T) string, code string) ([]T, error) {
	if len(ids) == 0 {
		return items, nil
	}
	var out []T
	for _, want := range ids {
		i := slices.IndexFunc(items, func(item T) bool { return id(item) == want })
		if i < 0 {
			return nil, &failure.Error{Code: code, Message: "The ID '" + want + "' does not exist"}
		}
		out = append(out, items[i])
	}
	return out, nil
}

// listing has the resources of a type, and the functions with which list selects and converts them.
type listing[T, Out any] struct {
	items      []T
	ids        []string // requested ids; empty: all items
	id         func(T) string
	code       string                 // code of the error for an unknown id
	filterable func(T) api.Filterable // must accept the zero value: see api.FilterItems
	write      func(T) Out            // converts an item to EC2's wire format
}

// list returns the items that a describe call selects, in the wire format of EC2, and the token of the next page.
func list[T, Out any](in listIn, l listing[T, Out]) ([]Out, string, error) {
	found, err := selectByID(l.items, l.ids, l.id, l.code)
	if err != nil {
		return nil, "", err
	}
	if found, err = api.FilterItems(slices.Clone(found), in.Filters, l.filterable); err != nil {
		return nil, "", err
	}
	p, err := in.Page(1000, 1000)
	if err != nil {
		return nil, "", err
	}
	found, next, err := api.PageOf(found, l.id, p)
	if err != nil {
		return nil, "", err
	}
	out := make([]Out, len(found))
	for i, item := range found {
		out[i] = l.write(item)
	}
	return out, next, nil
}

type describeVpcsIn struct {
	VpcIds []string `aws:"VpcId"`
	listIn
}

type describeVpcsOut struct {
	Vpcs      []vpc `aws:"VpcSet"`
	NextToken string
}

type vpc struct {
	VpcId           string
	OwnerId         string
	State           string
	CidrBlock       string
	InstanceTenancy string
	IsDefault       bool
	Ipv6CidrBlocks  []ipv6Block `aws:"Ipv6CidrBlockAssociationSet"`
	Tags            []world.Tag `aws:"TagSet"`
}

func describeVpcs(c *api.Call, in *describeVpcsIn) (describeVpcsOut, error) {
	found, next, err := list(in.listIn, listing[*network.VPC, vpc]{
		items: c.Region.Network.VPCs(), ids: in.VpcIds, id: func(v *network.VPC) string { return v.ID }, code: "InvalidVpcID.NotFound",
		filterable: func(v *network.VPC) api.Filterable {
			if v == nil {
				v = &network.VPC{}
			}
			return api.Filterable{Tags: v.Tags, Values: map[string][]string{
				"vpc-id": {v.ID}, "cidr": {v.CIDR.String()}, "cidr-block-association.cidr-block": {v.CIDR.String()},
				"state": {"available"}, "is-default": api.BoolValues(v.Default), "owner-id": {c.Caller.Account},
			}}
		},
		write: func(v *network.VPC) vpc {
			return vpc{
				VpcId:           v.ID,
				OwnerId:         c.Caller.Account,
				State:           "available",
				CidrBlock:       v.CIDR.String(),
				InstanceTenancy: "default",
				IsDefault:       v.Default,
				Ipv6CidrBlocks:  ipv6Blocks(v.ID, v.IPv6),
				Tags:            api.TagList(v.Tags),
			}
		},
	})
	return describeVpcsOut{Vpcs: found, NextToken: next}, err
}

type describeSubnetsIn struct {
	SubnetIds []string `aws:"SubnetId"`
	listIn
}

type describeSubnetsOut struct {
	Subnets   []subnet `aws:"SubnetSet"`
	NextToken string
}

type subnet struct {
	SubnetId                string
	SubnetArn               string
	State                   string
	VpcId                   string
	OwnerId                 string
	CidrBlock               string
	AvailableIpAddressCount int64
	AvailabilityZone        string
	AvailabilityZoneId      string
	DefaultForAz            bool
	MapPublicIpOnLaunch     bool
	Ipv6CidrBlocks          []ipv6Block `aws:"Ipv6CidrBlockAssociationSet"`
	Tags                    []world.Tag `aws:"TagSet"`
}

type ipv6Block struct {
	AssociationId      string
	Ipv6CidrBlock      string
	Ipv6CidrBlockState blockState
}

type blockState struct{ State string }

// ipv6Blocks returns the IPv6 block of a subnet or VPC; nil if it has none.
func ipv6Blocks(id string, block netip.Prefix) []ipv6Block {
	if !block.IsValid() {
		return nil
	}
	prefix, suffix, _ := strings.Cut(id, "-")
	return []ipv6Block{{prefix + "-cidr-assoc-" + suffix, block.String(), blockState{"associated"}}}
}

func describeSubnets(c *api.Call, in *describeSubnetsIn) (describeSubnetsOut, error) {
	found, next, err := list(in.listIn, listing[*network.Subnet, subnet]{
		items: c.Region.Network.Subnets(),
		ids:   in.SubnetIds,
		id:    func(s *network.Subnet) string { return s.ID },
		code:  "InvalidSubnetID.NotFound",
		filterable: func(s *network.Subnet) api.Filterable {
			if s == nil {
				s = &network.Subnet{}
			}
			return api.Filterable{Tags: s.Tags, Values: map[string][]string{
				"subnet-id": {s.ID}, "vpc-id": {s.VPCID}, "availability-zone": {s.Zone.Name}, "availability-zone-id": {s.Zone.ID},
				"cidr-block": {s.CIDR.String()}, "state": {"available"}, "default-for-az": {"false"},
				"map-public-ip-on-launch":    api.BoolValues(s.Public),
				"available-ip-address-count": {strconv.Itoa(s.Free)}, "owner-id": {c.Caller.Account},
			}}
		},
		write: func(s *network.Subnet) subnet {
			return subnet{
				SubnetId:                s.ID,
				SubnetArn:               c.Region.ARN("ec2", c.Caller.Account, "subnet/"+s.ID),
				State:                   "available",
				VpcId:                   s.VPCID,
				OwnerId:                 c.Caller.Account,
				CidrBlock:               s.CIDR.String(),
				AvailableIpAddressCount: int64(s.Free),
				AvailabilityZone:        s.Zone.Name,
				AvailabilityZoneId:      s.Zone.ID,
				MapPublicIpOnLaunch:     s.Public,
				Ipv6CidrBlocks:          ipv6Blocks(s.ID, s.IPv6),
				Tags:                    api.TagList(s.Tags),
			}
		},
	})
	return describeSubnetsOut{Subnets: found, NextToken: next}, err
}

type describeGroupsIn struct {
	GroupIds   []string `aws:"GroupId"`
	GroupNames []string `aws:"GroupName"`
	listIn
}

type describeGroupsOut struct {
	SecurityGroups []securityGroup `aws:"SecurityGroupInfo"`
	NextToken      string
}

type securityGroup struct {
	GroupId             string
	GroupName           string
	GroupDescription    string
	OwnerId             string
	VpcId               string
	IpPermissions       []permission
	IpPermissionsEgress []permission
	Tags                []world.Tag `aws:"TagSet"`
}

// permission is a rule of a security group in the wire format of EC2.
type permission struct {
	IpProtocol    string
	FromPort      *int64
	ToPort        *int64
	Groups        []groupPair
	IpRanges      []ipRange
	Ipv6Ranges    []ipRange
	PrefixListIds []string
}

type groupPair struct {
	UserId  string
	GroupId string
}

type ipRange struct {
	CidrIp string
}

func describeSecurityGroups(c *api.Call, in *describeGroupsIn) (describeGroupsOut, error) {
	items := c.Region.Network.SecurityGroups()
	if len(in.GroupNames) > 0 {
		items = slices.DeleteFunc(slices.Clone(items), func(g *network.SecurityGroup) bool { return !slices.Contains(in.GroupNames, g.Name) })
	}
	found, next, err := list(in.listIn, listing[*network.SecurityGroup, securityGroup]{
		items: items, ids: in.GroupIds, id: func(g *network.SecurityGroup) string { return g.ID }, code: "InvalidGroup.NotFound",
		filterable: func(g *network.SecurityGroup) api.Filterable {
			if g == nil {
				g = &network.SecurityGroup{}
			}
			return api.Filterable{Tags: g.Tags, Values: map[string][]string{
				"group-id": {g.ID}, "group-name": {g.Name}, "vpc-id": {g.VPCID}, "description": {g.Description}, "owner-id": {c.Caller.Account},
			}}
		},
		write: func(g *network.SecurityGroup) securityGroup {
			return securityGroup{
				GroupId: g.ID, GroupName: g.Name, GroupDescription: g.Description, OwnerId: c.Caller.Account, VpcId: g.VPCID,
				IpPermissions: permissionsOf(c, g.Ingress), IpPermissionsEgress: permissionsOf(c, g.Egress), Tags: api.TagList(g.Tags),
			}
		},
	})
	return describeGroupsOut{SecurityGroups: found, NextToken: next}, err
}

func permissionsOf(c *api.Call, rules []network.Rule) []permission {
	out := make([]permission, 0, len(rules))
	for _, r := range rules {
		p := permission{IpProtocol: r.Protocol, Groups: []groupPair{}, IpRanges: []ipRange{}, Ipv6Ranges: []ipRange{}, PrefixListIds: []string{}}
		if r.Protocol != "-1" { // "-1", all protocols, has no ports
			p.FromPort, p.ToPort = &r.From, &r.To
		}
		for _, g := range r.Groups {
			p.Groups = append(p.Groups, groupPair{UserId: c.Caller.Account, GroupId: g})
		}
		for _, cidr := range r.CIDRs {
			p.IpRanges = append(p.IpRanges, ipRange{CidrIp: cidr})
		}
		out = append(out, p)
	}
	return out
}

type describeRouteTablesIn struct {
	RouteTableIds []string `aws:"RouteTableId"`
	listIn
}

type describeRouteTablesOut struct {
	RouteTables []routeTable `aws:"RouteTableSet"`
	NextToken   string
}

type routeTable struct {
	RouteTableId string
	VpcId        string
	OwnerId      string
	Routes       []route            `aws:"RouteSet"`
	Associations []routeAssociation `aws:"AssociationSet"`
	Tags         []world.Tag        `aws:"TagSet"`
}

type route struct {
	DestinationCidrBlock string
	GatewayId            string
	NatGatewayId         string
	State                string
	Origin               string
}

type routeAssociation struct {
	RouteTableAssociationId string
	RouteTableId            string
	SubnetId                string
	Main                    bool
}

func describeRouteTables(c *api.Call, in *describeRouteTablesIn) (describeRouteTablesOut, error) {
	found, next, err := list(in.listIn, listing[*network.RouteTable, routeTable]{
		items: c.Region.Network.RouteTables(),
		ids:   in.RouteTableIds,
		id:    func(t *network.RouteTable) string { return t.ID },
		code:  "InvalidRouteTableID.NotFound",
		filterable: func(t *network.RouteTable) api.Filterable {
			if t == nil {
				t = &network.RouteTable{}
			}
			return api.Filterable{Tags: t.Tags, Values: map[string][]string{
				"route-table-id": {t.ID}, "vpc-id": {t.VPCID}, "association.subnet-id": t.SubnetIDs,
				"association.main": api.BoolValues(t.Main), "owner-id": {c.Caller.Account},
			}}
		},
		write: func(t *network.RouteTable) routeTable { return routeTableOf(c, t) },
	})
	return describeRouteTablesOut{RouteTables: found, NextToken: next}, err
}

func routeTableOf(c *api.Call, t *network.RouteTable) routeTable {
	out := routeTable{
		RouteTableId: t.ID,
		VpcId:        t.VPCID,
		OwnerId:      c.Caller.Account,
		Routes:       []route{},
		Associations: []routeAssociation{},
		Tags:         api.TagList(t.Tags),
	}
	for i, r := range t.Routes {
		wire := route{DestinationCidrBlock: r.Destination, State: "active", Origin: "CreateRoute"}
		if r.IsBlackhole {
			wire.State = "blackhole"
		}
		if i == 0 { // the local route
			wire.Origin = "CreateRouteTable"
		}
		if strings.HasPrefix(r.Target, "nat-") {
			wire.NatGatewayId = r.Target
		} else {
			wire.GatewayId = r.Target
		}
		out.Routes = append(out.Routes, wire)
	}
	if t.Main {
		out.Associations = append(out.Associations,
			routeAssociation{RouteTableAssociationId: "rtbassoc-" + t.ID[len("rtb-"):], RouteTableId: t.ID, Main: true})
	}
	for _, s := range t.SubnetIDs {
		out.Associations = append(out.Associations,
			routeAssociation{RouteTableAssociationId: "rtbassoc-" + s[len("subnet-"):], RouteTableId: t.ID, SubnetId: s})
	}
	return out
}
