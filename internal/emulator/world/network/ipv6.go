package network

import (
	"encoding/binary"
	"net/netip"
)

// Sizes of what EC2 gives an interface beside single addresses, in bits.
// Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-prefix-eni.html.
const (
	prefixBits4 = 28
	prefixBits6 = 80
	PrefixSize4 = 1 << (32 - prefixBits4)
)

// EnableIPv6 makes a VPC of IPv4 one of both: it gets a /56 block of Amazon's, and each of its subnets a /64 of that.
func (net *Network) EnableIPv6(vpc *VPC) {
	vpc.IPv6 = netip.MustParsePrefix("2600:1f18:63f7:b900::/56")
	base := vpc.IPv6.Addr().As16()
	n := byte(0)
	for _, s := range net.subnets {
		if s.VPCID != vpc.ID {
			continue
		}
		a := base
		a[7] = n
		n++
		s.IPv6 = netip.PrefixFrom(netip.AddrFrom16(a), 64)
	}
}

// TakeIPv6 hands out an address of the first /80 block, which stays free of prefixes. None is used twice.
func (s *Subnet) TakeIPv6() netip.Addr {
	s.last6++
	a := s.IPv6.Addr().As16()
	binary.BigEndian.PutUint32(a[12:], s.last6+reservedAddresses)
	return netip.AddrFrom16(a)
}

// TakeIPv6Prefix hands out a /80 block.
func (s *Subnet) TakeIPv6Prefix() netip.Prefix {
	s.lastPrefix6++
	a := s.IPv6.Addr().As16()
	binary.BigEndian.PutUint16(a[8:], s.lastPrefix6)
	return netip.PrefixFrom(netip.AddrFrom16(a), prefixBits6)
}

// TakeIPv4Prefix hands out a /28 block of which no address is taken; not ok if there is none left.
func (s *Subnet) TakeIPv4Prefix() (netip.Prefix, bool) {
	for a := s.CIDR.Addr(); s.CIDR.Contains(a); {
		block := netip.PrefixFrom(a, prefixBits4)
		free := true
		for range PrefixSize4 {
			free = free && !s.used[a] && !s.reserved(a)
			a = a.Next()
		}
		if free && s.Free >= PrefixSize4 {
			s.each4(block, func(a netip.Addr) { s.used[a] = true; s.Free-- })
			return block, true
		}
	}
	return netip.Prefix{}, false
}

// GivePrefix takes back a block that is written out; of IPv6 there are always more.
func (s *Subnet) GivePrefix(text string) {
	if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
		s.each4(p, s.give)
	}
}

func (s *Subnet) each4(block netip.Prefix, do func(netip.Addr)) {
	for a := block.Addr(); block.Contains(a); a = a.Next() {
		do(a)
	}
}
