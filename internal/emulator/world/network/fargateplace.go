package network

import (
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// FargateAddress is the network address of the host of one Fargate pod. The host is not an instance of the account.
type FargateAddress struct {
	SubnetID string    // subnet of the address
	Zone     site.Zone // zone of the subnet
	IP       string    // IPv4
	Name     string    // private DNS name of the address: "ip-10-0-0-12.ec2.internal"
}

// TakeFargatePlace assigns an address in the first subnet that exists and has a free one.
func (net *Network) TakeFargatePlace(subnetIDs []string) (FargateAddress, error) {
	for _, id := range subnetIDs {
		s := net.Subnet(id)
		if s == nil {
			continue
		}
		if a, ok := s.TakeAddress(); ok {
			return FargateAddress{SubnetID: id, Zone: s.Zone, IP: a.String(), Name: PrivateName(net.site.Region, a.String())}, nil
		}
	}
	return FargateAddress{}, failure.New("InsufficientFreeAddresses", "One or more of the subnets associated with your Fargate profile do not have enough available IP addresses.")
}

// ReleaseFargatePlace releases the address.
func (net *Network) ReleaseFargatePlace(p FargateAddress) {
	if s := net.Subnet(p.SubnetID); s != nil {
		s.ReleaseAddress(p.IP)
	}
}
