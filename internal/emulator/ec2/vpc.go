package ec2

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

type vpcAttributeIn struct {
	VpcId     string
	Attribute string
}

// vpcAttributeOut has the requested attribute. The field of the other attribute is nil.
type vpcAttributeOut struct {
	VpcId              string
	EnableDnsSupport   *attributeValue
	EnableDnsHostnames *attributeValue
}

type attributeValue struct{ Value bool }

func describeVpcAttribute(c *api.Call, in *vpcAttributeIn) (vpcAttributeOut, error) {
	i := slices.IndexFunc(c.Region.Network.VPCs(), func(v *network.VPC) bool { return v.ID == in.VpcId })
	if i < 0 {
		return vpcAttributeOut{}, &failure.Error{Code: "InvalidVpcID.NotFound", Message: "The vpc ID '" + in.VpcId + "' does not exist"}
	}
	v := c.Region.Network.VPCs()[i]
	out := vpcAttributeOut{VpcId: v.ID}
	switch in.Attribute {
	case "enableDnsSupport":
		out.EnableDnsSupport = &attributeValue{!v.NoDNSSupport}
	case "enableDnsHostnames":
		out.EnableDnsHostnames = &attributeValue{!v.NoDNSHostnames}
	default:
		return vpcAttributeOut{}, &failure.Error{Code: "InvalidParameterValue", Message: "Value (" + in.Attribute +
			") for parameter attribute is invalid."}
	}
	return out, nil
}

type describeNatGatewaysIn struct {
	NatGatewayIds []string `aws:"NatGatewayId"`
	listIn
}

type describeNatGatewaysOut struct {
	NatGateways []natGateway `aws:"NatGatewaySet"`
	NextToken   string
}

type natGateway struct {
	NatGatewayId        string
	VpcId               string
	State               string
	NatGatewayAddresses []natAddress `aws:"NatGatewayAddressSet"`
}

type natAddress struct {
	PublicIp string
}

// describeNatGateways lists the NAT gateways that are targets of routes. The emulated world has no other NAT gateways.
func describeNatGateways(c *api.Call, in *describeNatGatewaysIn) (describeNatGatewaysOut, error) {
	var all []natGateway
	for _, table := range c.Region.Network.RouteTables() {
		for _, r := range table.Routes {
			isListed := slices.ContainsFunc(all, func(g natGateway) bool { return g.NatGatewayId == r.Target })
			if strings.HasPrefix(r.Target, "nat-") && !isListed {
				all = append(all, natGateway{r.Target, table.VPCID, "available", []natAddress{{network.GatewayAddress(r.Target)}}})
			}
		}
	}
	found, next, err := list(in.listIn, listing[natGateway, natGateway]{
		items: all, ids: in.NatGatewayIds, id: func(g natGateway) string { return g.NatGatewayId }, code: "NatGatewayNotFound",
		filterable: func(g natGateway) api.Filterable {
			return api.Filterable{Values: map[string][]string{"nat-gateway-id": {g.NatGatewayId}, "vpc-id": {g.VpcId}, "state": {g.State}}}
		},
		write: func(g natGateway) natGateway { return g },
	})
	return describeNatGatewaysOut{NatGateways: found, NextToken: next}, err
}
