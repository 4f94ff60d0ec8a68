package instance

import "math"

// Environment variables of the VPC CNI's pod. Source: https://github.com/aws/amazon-vpc-cni-k8s, "CNI Configuration
// Variables".
const (
	EnvPrefixes = "ENABLE_PREFIX_DELEGATION"           // /28 blocks instead of single addresses
	EnvCustom   = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG" // custom networking: pods use separate subnets
	EnvIPv6     = "ENABLE_IPv6"                        // pods have IPv6 addresses
)

// podAddresses returns the number of addresses that the VPC CNI has for pods without hostNetwork. environment has the
// variables of the CNI's pod. The addresses are those of each interface of the default network card, except the
// interface's primary address. With custom networking, the first interface is not used for pods. With prefixes, which
// require a Nitro or bare metal type, there is a block of 16 addresses in place of each address. With prefixes and
// IPv6, the number is unlimited, because the node has a /80 block; it is 0 if the instance has no IPv6 address.
func (b *boot) podAddresses(environment map[string]string) int64 {
	n := b.Facts.Network
	interfaces := n.MaxInterfaces
	for _, card := range n.Cards {
		if card.Index == n.DefaultCard {
			interfaces = card.MaxInterfaces
		}
	}
	if environment[EnvCustom] == "true" {
		interfaces--
	}
	slots, nitro := interfaces*(n.IPv4PerInterface-1), b.Facts.Hypervisor != "xen"
	switch {
	case environment[EnvPrefixes] != "true" || !nitro:
		return slots
	case environment[EnvIPv6] == "true" && b.IPv6 != "":
		return math.MaxInt64
	case environment[EnvIPv6] == "true":
		return 0
	}
	return slots * 16
}
