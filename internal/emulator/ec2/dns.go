package ec2

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

type modifyVpcAttributeIn struct {
	VpcId              string
	EnableDnsSupport   *attributeValue
	EnableDnsHostnames *attributeValue
}

// modifyVpcAttribute changes one of the two DNS attributes of a VPC. A request for both is an error, as in EC2.
func modifyVpcAttribute(c *api.Call, in *modifyVpcAttributeIn) (api.Done, error) {
	i := slices.IndexFunc(c.Region.Network.VPCs(), func(v *network.VPC) bool { return v.ID == in.VpcId })
	switch {
	case i < 0:
		return api.Done{}, &failure.Error{Code: "InvalidVpcID.NotFound", Message: "The vpc ID '" + in.VpcId + "' does not exist"}
	case in.EnableDnsSupport != nil && in.EnableDnsHostnames != nil:
		return api.Done{}, &failure.Error{Code: "InvalidParameterCombination", Message: "Fields for multiple attribute types specified"}
	case in.EnableDnsSupport != nil:
		c.Region.Network.VPCs()[i].NoDNSSupport = !in.EnableDnsSupport.Value
	case in.EnableDnsHostnames != nil:
		c.Region.Network.VPCs()[i].NoDNSHostnames = !in.EnableDnsHostnames.Value
	}
	return api.Done{Return: true}, nil
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

// createDhcpOptions creates DHCP options. It ignores all options except domain-name-servers.
func createDhcpOptions(c *api.Call, in *createDhcpOptionsIn) (createDhcpOptionsOut, error) {
	var servers []string
	for _, option := range in.DhcpConfigurations {
		if option.Key == "domain-name-servers" {
			servers = append(servers, option.Values...)
		}
	}
	if len(servers) == 0 {
		return createDhcpOptionsOut{},
			&failure.Error{Code: "MissingParameter", Message: "The request must contain the parameter dhcpConfigurationSet"}
	}
	o := c.Region.Network.CreateDHCPOptions(servers...)
	nameServers := dhcpConfiguration{Key: "domain-name-servers"}
	for _, s := range o.Servers {
		nameServers.Values = append(nameServers.Values, attributeText{s})
	}
	return createDhcpOptionsOut{dhcpOptions{
		DhcpOptionsId: o.ID, OwnerId: c.Caller.Account, DhcpConfigurations: []dhcpConfiguration{nameServers},
	}}, nil
}

type associateDhcpOptionsIn struct{ DhcpOptionsId, VpcId string }

func associateDhcpOptions(c *api.Call, in *associateDhcpOptionsIn) (api.Done, error) {
	return api.Done{Return: true}, c.Region.Network.AssociateDHCPOptions(in.VpcId, in.DhcpOptionsId)
}
