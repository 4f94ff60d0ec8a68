package network

import (
	"cmp"
	"slices"
)

// ACL is a list of rules for the packets of subnets, in both directions and each packet by itself: it knows no connections.
type ACL struct {
	ID        string     // "acl-0…"
	VPCID     string     // "vpc-0…"
	Default   bool       // of the subnets that no other one names
	SubnetIDs []string   // the subnets it applies to; see Default
	Entries   []ACLEntry // in any order; none: no packet passes
}

// ACLEntry lets packets through or not. The one with the lowest number that fits decides; what none fits is dropped.
type ACLEntry struct {
	Number   int64  // lower numbers are checked first
	Out      bool   // of what leaves the subnet, not of what comes
	Deny     bool   // it drops the packets; false: it lets them pass
	Protocol string // "-1" is all, "6" TCP, "17" UDP
	CIDR     string // of the other end: "0.0.0.0/0"
	From, To int64  // ports; 0 with protocol "-1"
}

// fits reports whether the entry is about TCP packets to a port of the world.
func (e ACLEntry) fits(out bool, port int64) bool {
	return e.Out == out && e.CIDR == "0.0.0.0/0" && (e.Protocol == "-1" || e.Protocol == "6" && e.From <= port && port <= e.To)
}

// Lets reports whether TCP packets to a port get through, on their way out or in.
func (n *ACL) Lets(out bool, port int64) bool {
	entries := slices.SortedFunc(slices.Values(n.Entries), func(a, b ACLEntry) int { return cmp.Compare(a.Number, b.Number) })
	i := slices.IndexFunc(entries, func(e ACLEntry) bool { return e.fits(out, port) })
	return i >= 0 && !entries[i].Deny
}

// CreateNetworkACL makes a network ACL for some subnets of a VPC.
func (net *Network) CreateNetworkACL(n ACL) *ACL {
	n.ID = net.site.IDs.New("acl")
	net.acls = append(net.acls, &n)
	return &n
}

// NetworkACLs returns the network ACLs of the region, oldest first.
func (net *Network) NetworkACLs() []*ACL { return net.acls }

// NetworkACL returns the network ACL of a subnet: the one that names it, else its VPC's default; nil if it does not exist, which lets
// everything through.
func (net *Network) NetworkACL(s *Subnet) *ACL {
	named := func(n *ACL) bool { return slices.Contains(n.SubnetIDs, s.ID) }
	if i := slices.IndexFunc(net.acls, named); i >= 0 {
		return net.acls[i]
	}
	if i := slices.IndexFunc(net.acls, func(n *ACL) bool { return n.Default && n.VPCID == s.VPCID }); i >= 0 {
		return net.acls[i]
	}
	return nil
}
