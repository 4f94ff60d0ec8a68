package instance

import "math"

// What the environment of the VPC CNI's pod sets.
// Source: https://github.com/aws/amazon-vpc-cni-k8s, "CNI Configuration Variables".
const (
	EnvPrefixes = "ENABLE_PREFIX_DELEGATION"           // /28 blocks instead of single addresses
	EnvCustom   = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG" // pods are in subnets of their own
	EnvIPv6     = "ENABLE_IPv6"
)

// podAddresses is how many addresses the VPC CNI has for pods that are not on the host's network: on each interface of the
// default card, all but the interface's own. With custom networking the first interface carries no pods; with prefixes,
// which take a Nitro type (metal is one), each address is a block of sixteen. A cluster of IPv6 has a /80 block for each node.
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
