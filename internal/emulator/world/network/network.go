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
	CIDR    netip.Prefix      // of IPv4
	IPv6    netip.Prefix      // not valid: it has no IPv6 block; see EnableIPv6
	Default bool              // launches that name no subnet use its subnets
	Tags    map[string]string // nil: none

	// NoDNSSupport and NoDNSHostnames switch off what a VPC for EKS needs: its resolver, and names for its hosts.
	NoDNSSupport, NoDNSHostnames bool
	// NameServers are the DNS servers of the VPC's DHCP options; none: AmazonDNS.
	NameServers []string
}

// Subnet is a part of a VPC in one zone.
type Subnet struct {
	ID     string            // "subnet-0…"
	VPCID  string            // "vpc-0…"
	Zone   site.Zone         // that all of it is in
	CIDR   netip.Prefix      // of IPv4, /16 to /28
	IPv6   netip.Prefix      // not valid: it has no IPv6 block
	Public bool              // gives public addresses on launch
	Tags   map[string]string // nil: none

	// Free is how many addresses are left. A test sets it lower to play a subnet
	// whose addresses pods have taken.
	Free int

	next netip.Addr
	used map[netip.Addr]bool

	last6       uint32 // addresses handed out
	lastPrefix6 uint16
}

// SecurityGroup is a set of firewall rules.
type SecurityGroup struct {
	ID          string            // "sg-0…"
	VPCID       string            // "vpc-0…"
	Name        string            // unique in the VPC
	Description string            // free text; empty: none
	Ingress     []Rule            // what may come in; none: nothing
	Egress      []Rule            // what may go out; none: nothing
	Tags        map[string]string // nil: none
}

// Rule lets traffic through a security group.
type Rule struct {
	Protocol string   // "-1" is all, "tcp", "udp", "icmp"
	From, To int64    // ports; -1 with protocol "-1"
	CIDRs    []string // the other end's addresses
	Groups   []string // ids of security groups
}

// RouteTable says where the traffic of subnets goes.
type RouteTable struct {
	ID        string            // "rtb-0…"
	VPCID     string            // "vpc-0…"
	Main      bool              // it applies to the VPC's subnets that no other table names
	SubnetIDs []string          // the subnets it applies to; see Main
	Routes    []Route           // one for each destination
	Tags      map[string]string // nil: none
}

// Route is one line of a route table.
type Route struct {
	Destination string // "0.0.0.0/0"
	Target      string // "local", "igw-…", "nat-…", "vpce-…"
	Gone        bool   // what it leads to was deleted: the route is a black hole
}

// Endpoint is a VPC endpoint.
type Endpoint struct {
	ID            string            // "vpce-0…"
	VPCID         string            // "vpc-0…"
	Service       string            // "com.amazonaws.us-east-1.sts"
	Kind          string            // "Interface" or "Gateway"
	SubnetIDs     []string          // of its network interfaces, if it is of kind Interface
	GroupIDs      []string          // security groups of these interfaces
	RouteTableIDs []string          // that lead to it, if it is of kind Gateway
	Tags          map[string]string // nil: none
}

// Network has the VPCs of a region and what is in them: subnets, security groups, route tables, VPC endpoints, network
// ACLs and DHCP options.
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

// reservedAddresses are those of each subnet that AWS keeps: the first four and the last.
const reservedAddresses = 5

// CreateVPC makes a VPC.
func (net *Network) CreateVPC(cidr string, tags map[string]string) (*VPC, error) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil || !p.Addr().Is4() {
		return nil, failure.New("InvalidParameterValue", "Value (%s) for parameter cidrBlock is invalid. This is not a valid CIDR block.", cidr)
	}
	v := &VPC{ID: net.site.IDs.New("vpc"), CIDR: p.Masked(), Tags: tags}
	net.vpcs = append(net.vpcs, v)
	return v, nil
}

// CreateSubnet makes a subnet of a VPC in a zone.
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
		next: p.Addr(), used: map[netip.Addr]bool{},
	}
	net.subnets = append(net.subnets, s)
	return s, nil
}

// CreateSecurityGroup makes a group that lets nothing in and everything out.
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

// CreateRouteTable makes a route table for some subnets of a VPC.
func (net *Network) CreateRouteTable(t RouteTable) *RouteTable {
	t.ID = net.site.IDs.New("rtb")
	net.routeTables = append(net.routeTables, &t)
	return &t
}

// CreateEndpoint makes a VPC endpoint.
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

// Subnets returns the subnets of the region, oldest first. Fields of theirs may
// be set to play a fault.
func (net *Network) Subnets() []*Subnet { return net.subnets }

// SecurityGroups returns the security groups of the region, oldest first. Fields
// of theirs may be set to play a fault.
func (net *Network) SecurityGroups() []*SecurityGroup { return net.groups }

// RouteTables returns the route tables of the region, oldest first.
func (net *Network) RouteTables() []*RouteTable { return net.routeTables }

// Endpoints returns the VPC endpoints of the region, oldest first.
func (net *Network) Endpoints() []*Endpoint { return net.endpoints }

// TakeAddress hands out a free address, the one after the last handed out.
func (s *Subnet) TakeAddress() (netip.Addr, bool) {
	size := 1 << (32 - s.CIDR.Bits())
	if s.Free <= 0 || len(s.used) >= size-reservedAddresses {
		return netip.Addr{}, false
	}
	for {
		s.next = s.next.Next()
		if !s.CIDR.Contains(s.next) {
			s.next = s.CIDR.Addr()
		}
		if s.used[s.next] || s.reserved(s.next) {
			continue
		}
		s.used[s.next] = true
		s.Free--
		return s.next, true
	}
}

// give takes an address back.
func (s *Subnet) give(a netip.Addr) {
	if s.used[a] {
		delete(s.used, a)
		s.Free++
	}
}

// GiveAddress takes back an address that is written out; an empty one is none.
func (s *Subnet) GiveAddress(address string) {
	if a, err := netip.ParseAddr(address); err == nil {
		s.give(a)
	}
}

// reserved reports whether AWS keeps the address for itself.
func (s *Subnet) reserved(a netip.Addr) bool {
	first := s.CIDR.Addr()
	for range reservedAddresses - 1 {
		if a == first {
			return true
		}
		first = first.Next()
	}
	return !s.CIDR.Contains(a.Next())
}

// joinZones writes zone names as EC2's messages do.
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
