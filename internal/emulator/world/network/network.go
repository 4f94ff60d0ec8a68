package network

import (
	"net/netip"
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// VPC is a virtual network.
type VPC struct {
	ID      string            // "vpc-0…"
	CIDR    netip.Prefix      // IPv4 block
	IPv6    netip.Prefix      // IPv6 block; the zero value means none; see EnableIPv6
	Default bool              // launches without a subnet use the subnets of this VPC
	Tags    map[string]string // nil: none

	// NoDNSSupport and NoDNSHostnames disable enableDnsSupport (the resolver) and enableDnsHostnames (names of hosts).
	// EKS requires that both are enabled.
	NoDNSSupport, NoDNSHostnames bool
	// NameServers are the DNS servers of the VPC's DHCP options; none: AmazonDNS.
	NameServers []string
}

// Subnet is a part of a VPC in one zone.
type Subnet struct {
	ID     string            // "subnet-0…"
	VPCID  string            // "vpc-0…"
	Zone   site.Zone         // zone of the subnet
	CIDR   netip.Prefix      // IPv4 block, /16 to /28
	IPv6   netip.Prefix      // IPv6 block; the zero value means none
	Public bool              // instances get public addresses at launch
	Tags   map[string]string // nil: none

	// Free is the number of free addresses. A test may change it, as if pods took or released addresses.
	Free int

	last netip.Addr          // the IPv4 address that TakeAddress assigned last; initially the first address of CIDR
	used map[netip.Addr]bool // assigned IPv4 addresses

	last6       uint32 // number of assigned IPv6 addresses
	lastPrefix6 uint16 // number of assigned IPv6 prefixes
}

// SecurityGroup is a set of firewall rules.
type SecurityGroup struct {
	ID          string            // "sg-0…"
	VPCID       string            // "vpc-0…"
	Name        string            // unique in the VPC
	Description string            // free text; empty: none
	Ingress     []Rule            // allowed inbound traffic; none: no traffic
	Egress      []Rule            // allowed outbound traffic; none: no traffic
	Tags        map[string]string // nil: none
}

// Rule allows traffic in one direction.
type Rule struct {
	Protocol string   // "tcp", "udp" or "icmp"; "-1" means all
	From, To int64    // ports; -1 with protocol "-1"
	CIDRs    []string // allowed sources of inbound traffic, or destinations of outbound traffic
	Groups   []string // ids of security groups whose members are allowed as sources or destinations
}

// RouteTable has the routes of subnets.
type RouteTable struct {
	ID        string            // "rtb-0…"
	VPCID     string            // "vpc-0…"
	Main      bool              // the table applies to the subnets of the VPC that no other table lists
	SubnetIDs []string          // the subnets that the table applies to; see Main
	Routes    []Route           // one for each destination
	Tags      map[string]string // nil: none
}

// Route is one line of a route table.
type Route struct {
	Destination string // "0.0.0.0/0"
	Target      string // "local", "igw-…", "nat-…", "vpce-…"
	IsBlackhole bool   // the target was deleted: the route is a black hole
}

// Endpoint is a VPC endpoint.
type Endpoint struct {
	ID            string            // "vpce-0…"
	VPCID         string            // "vpc-0…"
	Service       string            // "com.amazonaws.us-east-1.sts"
	Kind          string            // "Interface" or "Gateway"
	SubnetIDs     []string          // subnets of the network interfaces, of kind Interface
	GroupIDs      []string          // security groups of the network interfaces, of kind Interface
	RouteTableIDs []string          // route tables with a route to the endpoint, of kind Gateway
	Tags          map[string]string // nil: none
}

// Network has the VPCs of a region with their subnets, security groups, route tables, VPC endpoints, network ACLs and
// DHCP options.
type Network struct {
	site        *site.Site
	vpcs        []*VPC
	subnets     []*Subnet
	groups      []*SecurityGroup
	routeTables []*RouteTable
	endpoints   []*Endpoint
	acls        []*ACL // oldest first
	dhcp        []DHCPOptions
}

// NewNetwork returns the network of a region, without a VPC.
func NewNetwork(site *site.Site) Network { return Network{site: site} }

// reservedAddresses is the number of addresses of each subnet that AWS reserves: the first four and the last.
const reservedAddresses = 5

// CreateVPC creates a VPC.
func (net *Network) CreateVPC(cidr string, tags map[string]string) (*VPC, error) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil || !p.Addr().Is4() {
		return nil, failure.New("InvalidParameterValue", "Value (%s) for parameter cidrBlock is invalid. This is not a valid CIDR block.", cidr)
	}
	v := &VPC{ID: net.site.IDs.New("vpc"), CIDR: p.Masked(), Tags: tags}
	net.vpcs = append(net.vpcs, v)
	return v, nil
}

// CreateSubnet creates a subnet of a VPC in a zone.
func (net *Network) CreateSubnet(vpcID, zone, cidr string, tags map[string]string) (*Subnet, error) {
	vpc := net.VPC(vpcID)
	if vpc == nil {
		return nil, failure.New("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", vpcID)
	}
	z, ok := net.site.Zone(zone)
	if !ok {
		return nil, failure.New("InvalidParameterValue", "Value (%s) for parameter availabilityZone is invalid. Subnets can currently only be created in the following availability zones: %s.", zone, joinZones(net.site.Zones))
	}
	p, err := netip.ParsePrefix(cidr)
	if err != nil || !p.Addr().Is4() || p.Bits() < 16 || p.Bits() > 28 {
		return nil, failure.New("InvalidSubnet.Range", "The CIDR '%s' is invalid.", cidr)
	}
	if !vpc.CIDR.Overlaps(p) || p.Bits() < vpc.CIDR.Bits() {
		return nil, failure.New("InvalidSubnet.Range", "The CIDR '%s' is invalid.", cidr)
	}
	for _, s := range net.subnets {
		if s.VPCID == vpcID && s.CIDR.Overlaps(p) {
			return nil, failure.New("InvalidSubnet.Conflict", "The CIDR '%s' conflicts with another subnet", cidr)
		}
	}
	p = p.Masked()
	s := &Subnet{
		ID: net.site.IDs.New("subnet"), VPCID: vpcID, Zone: z, CIDR: p, Tags: tags,
		Free: 1<<(32-p.Bits()) - reservedAddresses,
		last: p.Addr(), used: map[netip.Addr]bool{},
	}
	net.subnets = append(net.subnets, s)
	return s, nil
}

// CreateSecurityGroup creates a group that allows no inbound traffic and all outbound traffic.
func (net *Network) CreateSecurityGroup(vpcID, name, description string, tags map[string]string) (*SecurityGroup, error) {
	if net.VPC(vpcID) == nil {
		return nil, failure.New("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", vpcID)
	}
	for _, g := range net.groups {
		if g.VPCID == vpcID && g.Name == name {
			return nil, failure.New("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", name, vpcID)
		}
	}
	g := &SecurityGroup{
		ID: net.site.IDs.New("sg"), VPCID: vpcID, Name: name, Description: description, Tags: tags,
		Egress: []Rule{{Protocol: "-1", From: -1, To: -1, CIDRs: []string{"0.0.0.0/0"}}},
	}
	net.groups = append(net.groups, g)
	return g, nil
}

// CreateRouteTable creates a route table.
func (net *Network) CreateRouteTable(t RouteTable) *RouteTable {
	t.ID = net.site.IDs.New("rtb")
	net.routeTables = append(net.routeTables, &t)
	return &t
}

// CreateEndpoint creates a VPC endpoint.
func (net *Network) CreateEndpoint(e Endpoint) *Endpoint {
	e.ID = net.site.IDs.New("vpce")
	net.endpoints = append(net.endpoints, &e)
	return &e
}

// VPC returns a VPC by id; nil if it does not exist.
func (net *Network) VPC(id string) *VPC {
	if i := slices.IndexFunc(net.vpcs, func(v *VPC) bool { return v.ID == id }); i >= 0 {
		return net.vpcs[i]
	}
	return nil
}

// Subnet returns a subnet by id; nil if it does not exist.
func (net *Network) Subnet(id string) *Subnet {
	if i := slices.IndexFunc(net.subnets, func(s *Subnet) bool { return s.ID == id }); i >= 0 {
		return net.subnets[i]
	}
	return nil
}

// SecurityGroup returns a security group by id; nil if it does not exist.
func (net *Network) SecurityGroup(id string) *SecurityGroup {
	if i := slices.IndexFunc(net.groups, func(g *SecurityGroup) bool { return g.ID == id }); i >= 0 {
		return net.groups[i]
	}
	return nil
}

// VPCs returns the VPCs of the region, oldest first.
func (net *Network) VPCs() []*VPC { return net.vpcs }

// Subnets returns the subnets of the region, oldest first. Callers may change their fields.
func (net *Network) Subnets() []*Subnet { return net.subnets }

// SecurityGroups returns the security groups of the region, oldest first. Callers may change their fields.
func (net *Network) SecurityGroups() []*SecurityGroup { return net.groups }

// RouteTables returns the route tables of the region, oldest first.
func (net *Network) RouteTables() []*RouteTable { return net.routeTables }

// Endpoints returns the VPC endpoints of the region, oldest first.
func (net *Network) Endpoints() []*Endpoint { return net.endpoints }

// TakeAddress assigns the next free IPv4 address after the one assigned last; false if none is free.
func (s *Subnet) TakeAddress() (netip.Addr, bool) {
	size := 1 << (32 - s.CIDR.Bits())
	// A test may have set Free too high. With no unused address, the loop would not end.
	if s.Free <= 0 || len(s.used) >= size-reservedAddresses {
		return netip.Addr{}, false
	}
	for {
		s.last = s.last.Next()
		if !s.CIDR.Contains(s.last) {
			s.last = s.CIDR.Addr()
		}
		if s.used[s.last] || s.isReserved(s.last) {
			continue
		}
		s.used[s.last] = true
		s.Free--
		return s.last, true
	}
}

func (s *Subnet) release(a netip.Addr) {
	if s.used[a] {
		delete(s.used, a)
		s.Free++
	}
}

// ReleaseAddress releases an IPv4 address. It ignores the empty string.
func (s *Subnet) ReleaseAddress(address string) {
	if a, err := netip.ParseAddr(address); err == nil {
		s.release(a)
	}
}

func (s *Subnet) isReserved(a netip.Addr) bool {
	reserved := s.CIDR.Addr()
	for range reservedAddresses - 1 { // the first four
		if a == reserved {
			return true
		}
		reserved = reserved.Next()
	}
	return !s.CIDR.Contains(a.Next())
}

func joinZones(zones []site.Zone) string {
	text := ""
	for i, z := range zones {
		if i > 0 {
			text += ", "
		}
		text += z.Name
	}
	return text
}
