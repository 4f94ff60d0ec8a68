package emulator

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

type modifyVpcAttributeIn struct {
	VpcId              string
	EnableDnsSupport   *attributeValue
	EnableDnsHostnames *attributeValue
}

// modifyVpcAttribute changes how names are resolved in a VPC.
func modifyVpcAttribute(c *call, in *modifyVpcAttributeIn) (done, error) {
	i := slices.IndexFunc(c.region.Network.VPCs(), func(v *world.VPC) bool { return v.ID == in.VpcId })
	switch {
	case i < 0:
		return done{}, &world.Error{Code: "InvalidVpcID.NotFound", Message: "The vpc ID '" + in.VpcId + "' does not exist"}
	case in.EnableDnsSupport != nil && in.EnableDnsHostnames != nil:
		return done{}, &world.Error{Code: "InvalidParameterCombination", Message: "Fields for multiple attribute types specified"}
	case in.EnableDnsSupport != nil:
		c.region.Network.VPCs()[i].NoDNSSupport = !in.EnableDnsSupport.Value
	case in.EnableDnsHostnames != nil:
		c.region.Network.VPCs()[i].NoDNSHostnames = !in.EnableDnsHostnames.Value
	}
	return done{Return: true}, nil
}

type createDhcpOptionsIn struct {
	DhcpConfigurations []dhcpConfigurationIn `aws:"DhcpConfiguration"`
}

type dhcpConfigurationIn struct {
	Key    string
	Values []string `aws:"Value"`
}

type createDhcpOptionsOut struct{ DhcpOptions dhcpOptions }

type dhcpOptions struct {
	DhcpOptionsId      string
	OwnerId            string
	DhcpConfigurations []dhcpConfiguration `aws:"DhcpConfigurationSet"`
}

type dhcpConfiguration struct {
	Key    string
	Values []attributeText `aws:"ValueSet"`
}

type attributeText struct{ Value string }

// createDhcpOptions makes DHCP options, of which the world knows the name servers.
func createDhcpOptions(c *call, in *createDhcpOptionsIn) (createDhcpOptionsOut, error) {
	var servers []string
	for _, one := range in.DhcpConfigurations {
		if one.Key == "domain-name-servers" {
			servers = append(servers, one.Values...)
		}
	}
	if len(servers) == 0 {
		return createDhcpOptionsOut{}, &world.Error{Code: "MissingParameter", Message: "The request must contain the parameter dhcpConfigurationSet"}
	}
	o := c.region.Network.CreateDHCPOptions(servers...)
	out := dhcpConfiguration{Key: "domain-name-servers"}
	for _, s := range o.Servers {
		out.Values = append(out.Values, attributeText{s})
	}
	return createDhcpOptionsOut{dhcpOptions{DhcpOptionsId: o.ID, OwnerId: c.caller.Account, DhcpConfigurations: []dhcpConfiguration{out}}}, nil
}

type associateDhcpOptionsIn struct{ DhcpOptionsId, VpcId string }

func associateDhcpOptions(c *call, in *associateDhcpOptionsIn) (done, error) {
	return done{Return: true}, c.region.Network.AssociateDHCPOptions(in.VpcId, in.DhcpOptionsId)
}
