package network

import (
	"encoding/binary"
	"net/netip"
)

// The lengths of the prefixes that EC2 assigns to interfaces, in bits, and the number of addresses of an IPv4 prefix.
// Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-prefix-eni.html.
const (
	prefixBits4 = 28
	prefixBits6 = 80
	PrefixSize4 = 1 << (32 - prefixBits4)
)

// EnableIPv6 adds IPv6 to a VPC: it assigns a /56 block to the VPC, and a /64 part of that block to each existing
// subnet.
func (net *Network) EnableIPv6(vpc *VPC) {
	vpc.IPv6 = netip.MustParsePrefix("2600:1f18:63f7:b900::/56")
	base := vpc.IPv6.Addr().As16()
	n := byte(0)
	for _, s := range net.subnets {
		if s.VPCID != vpc.ID {
			continue
		}
		a := base
		a[7] = n // the last byte of the /64 prefix is the number of the subnet
		n++
		s.IPv6 = netip.PrefixFrom(netip.AddrFrom16(a), 64)
	}
}

// TakeIPv6 assigns an IPv6 address from the first /80 block, which TakeIPv6Prefix does not assign. Addresses are never
// reused.
func (s *Subnet) TakeIPv6() netip.Addr {
	s.last6++
	a := s.IPv6.Addr().As16()
	binary.BigEndian.PutUint32(a[12:], s.last6+reservedAddresses)
	return netip.AddrFrom16(a)
}

// TakeIPv6Prefix assigns a /80 block.
func (s *Subnet) TakeIPv6Prefix() netip.Prefix {
	s.lastPrefix6++
	a := s.IPv6.Addr().As16()
	binary.BigEndian.PutUint16(a[8:], s.lastPrefix6)
	return netip.PrefixFrom(netip.AddrFrom16(a), prefixBits6)
}

// TakeIPv4Prefix assigns a /28 block without used addresses; false if the subnet has none.
func (s *Subnet) TakeIPv4Prefix() (netip.Prefix, bool) {
	for a := s.CIDR.Addr(); s.CIDR.Contains(a); {
		block := netip.PrefixFrom(a, prefixBits4)
		isFree := true
		for range PrefixSize4 {
			isFree = isFree && !s.used[a] && !s.isReserved(a)
			a = a.Next()
		}
		if isFree && s.Free >= PrefixSize4 { // a test may have reduced Free
			s.forEachIPv4(block, func(a netip.Addr) { s.used[a] = true; s.Free-- })
			return block, true
		}
	}
	return netip.Prefix{}, false
}

// ReleasePrefix releases an IPv4 prefix. It ignores IPv6 prefixes, which are never reused.
func (s *Subnet) ReleasePrefix(text string) {
	if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
		s.forEachIPv4(p, s.release)
	}
}

func (s *Subnet) forEachIPv4(block netip.Prefix, do func(netip.Addr)) {
	for a := block.Addr(); block.Contains(a); a = a.Next() {
		do(a)
	}
}
