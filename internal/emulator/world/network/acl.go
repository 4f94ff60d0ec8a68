package network

import (
	"cmp"
	"slices"
)

// ACL is a network ACL: a list of stateless rules for the packets of subnets, in both directions.
type ACL struct {
	ID        string     // "acl-0…"
	VPCID     string     // "vpc-0…"
	Default   bool       // the ACL applies to the subnets of the VPC that no other ACL lists
	SubnetIDs []string   // the subnets that the ACL applies to; see Default
	Entries   []ACLEntry // in any order; none: no packet passes
}

// ACLEntry allows or denies packets. The matching entry with the lowest number decides. A packet without a matching
// entry is dropped.
type ACLEntry struct {
	Number   int64  // lower numbers are checked first
	Out      bool   // the entry is for packets that leave the subnet; false: for packets that enter it
	Deny     bool   // drop the packets; false: allow them
	Protocol string // "-1" is all, "6" TCP, "17" UDP
	CIDR     string // sources of the packets, or destinations if Out is true: "0.0.0.0/0"
	From, To int64  // ports; 0 with protocol "-1"
}

// matches reports whether the entry matches TCP packets to a port, from or to all addresses. It returns false for an
// entry with a smaller block than 0.0.0.0/0.
func (e ACLEntry) matches(out bool, port int64) bool {
	return e.Out == out && e.CIDR == "0.0.0.0/0" && (e.Protocol == "-1" || e.Protocol == "6" && e.From <= port && port <= e.To)
}

// Allows reports whether the ACL allows TCP packets to a port. If out is true, these are the packets from the subnet to
// any address; otherwise the packets from any address to the subnet.
func (n *ACL) Allows(out bool, port int64) bool {
	entries := slices.SortedFunc(slices.Values(n.Entries), func(a, b ACLEntry) int { return cmp.Compare(a.Number, b.Number) })
	i := slices.IndexFunc(entries, func(e ACLEntry) bool { return e.matches(out, port) })
	return i >= 0 && !entries[i].Deny
}

// CreateNetworkACL creates a network ACL.
func (net *Network) CreateNetworkACL(n ACL) *ACL {
	n.ID = net.site.IDs.New("acl")
	net.acls = append(net.acls, &n)
	return &n
}

// NetworkACLs returns the network ACLs of the region, oldest first.
func (net *Network) NetworkACLs() []*ACL { return net.acls }

// NetworkACL returns the network ACL of a subnet: the one that lists the subnet, or else the VPC's default ACL; nil if
// the subnet has neither. Without an ACL, all packets are allowed.
func (net *Network) NetworkACL(s *Subnet) *ACL {
	lists := func(n *ACL) bool { return slices.Contains(n.SubnetIDs, s.ID) }
	if i := slices.IndexFunc(net.acls, lists); i >= 0 {
		return net.acls[i]
	}
	if i := slices.IndexFunc(net.acls, func(n *ACL) bool { return n.Default && n.VPCID == s.VPCID }); i >= 0 {
		return net.acls[i]
	}
	return nil
}
