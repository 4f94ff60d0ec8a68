package network

import (
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// AmazonDNS is the name of the VPC resolver in DHCP options.
const AmazonDNS = "AmazonProvidedDNS"

// DHCPOptions are the DHCP options of a VPC.
type DHCPOptions struct {
	ID      string   // "dopt-0…"
	Servers []string // domain-name-servers: AmazonDNS or addresses
}

// CreateDHCPOptions creates DHCP options without associating them with a VPC.
func (net *Network) CreateDHCPOptions(servers ...string) DHCPOptions {
	o := DHCPOptions{ID: net.site.IDs.New("dopt"), Servers: servers}
	net.dhcp = append(net.dhcp, o)
	return o
}

// AssociateDHCPOptions sets the DHCP options of a VPC.
func (net *Network) AssociateDHCPOptions(vpcID, optionsID string) error {
	i := slices.IndexFunc(net.dhcp, func(o DHCPOptions) bool { return o.ID == optionsID })
	if i < 0 {
		return failure.New("InvalidDhcpOptionID.NotFound", "The dhcpOption ID '%s' does not exist", optionsID)
	}
	for _, v := range net.VPCs() {
		if v.ID == vpcID {
			v.NameServers = net.dhcp[i].Servers
			return nil
		}
	}
	return failure.New("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", vpcID)
}

// ResolvesAWSNames reports whether instances of the VPC can resolve the names of AWS endpoints, including private
// cluster endpoints.
func (v *VPC) ResolvesAWSNames() bool {
	return !v.NoDNSSupport && (len(v.NameServers) == 0 || slices.Contains(v.NameServers, AmazonDNS))
}

// GatewayAddress returns the public address of a NAT gateway. It depends only on the id, and is in 198.18.0.0/16, a
// range that is not routed on the internet.
func GatewayAddress(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return netip.AddrFrom4([4]byte{198, 18, byte(h.Sum32() >> 8), byte(h.Sum32())}).String()
}

// PrivateName returns the name that VPC DNS gives an address.
func PrivateName(region, address string) string {
	domain := region + ".compute.internal"
	if region == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(address, ".", "-") + "." + domain
}
