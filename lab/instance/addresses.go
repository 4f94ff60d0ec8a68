package instance

import "math"

// Environment variables of the VPC CNI's pod. Source: https://github.com/aws/amazon-vpc-cni-k8s, "CNI Configuration
// Variables".
const (
	EnvPrefixes         = "ENABLE_PREFIX_DELEGATION"           // pods get addresses from /28 blocks instead of single addresses
	EnvCustomNetworking = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG" // custom networking: pods use separate subnets
	EnvIPv6             = "ENABLE_IPv6"                        // pods have IPv6 addresses
)

// podAddresses returns the number of addresses that the VPC CNI has for pods without hostNetwork. environment has the
// variables of the CNI's pod.
//
// Pods use all addresses of the interfaces on the default network card, except the primary address of each interface.
// With custom networking, pods do not use the first interface. With prefixes, each address is replaced by a block of 16
// addresses; this requires a Nitro or bare metal type. With prefixes and IPv6, the node has a /80 block, so the number
// is unlimited. Without an IPv6 address of the instance, the number is then 0.
func (b *boot) podAddresses(environment map[string]string) int64 {
	network := b.Facts.Network
	interfaces := network.MaxInterfaces
	for _, card := range network.Cards {
		if card.Index == network.DefaultCard {
			interfaces = card.MaxInterfaces
		}
	}
	if environment[EnvCustomNetworking] == "true" {
		interfaces--
	}
	slots, isNitro := interfaces*(network.IPv4PerInterface-1), b.Facts.Hypervisor != "xen"
	switch {
	case environment[EnvPrefixes] != "true" || !isNitro:
		return slots
	case environment[EnvIPv6] == "true" && b.IPv6 != "":
		return math.MaxInt64
	case environment[EnvIPv6] == "true":
		return 0
	}
	return slots * 16
}
