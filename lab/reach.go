package lab

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// checkEndpointName returns an error if the name of the API server cannot be resolved within the VPC. The VPC
// must resolve AWS names and, for a private-only endpoint, have DNS host names enabled.
func checkEndpointName(r *world.Region, c *ekscluster.Cluster) error {
	i := slices.IndexFunc(r.Network.VPCs(), func(v *network.VPC) bool { return v.ID == c.VPCID })
	if i < 0 {
		return nil
	}
	v := r.Network.VPCs()[i]
	if v.ResolvesAWSNames() && !(v.NoDNSHostnames && c.PrivateAccess && c.NoPublicAccess) {
		return nil
	}
	host := c.Endpoint
	if u, err := url.Parse(c.Endpoint); err == nil {
		host = u.Hostname()
	}
	return errors.New("dial tcp: lookup " + host + ": no such host")
}

// isAdmitted reports whether the cluster's endpoint accepts connections of an instance. With private access, the
// endpoint accepts every instance. Otherwise the endpoint's CIDR list must contain the public address of the instance
// or of its NAT gateway; an empty list accepts every instance.
func isAdmitted(r *world.Region, c *ekscluster.Cluster, i world.Instance) bool {
	if c.PrivateAccess || len(c.PublicCIDRs) == 0 {
		return true
	}
	if c.NoPublicAccess {
		return false
	}
	from := i.PublicIP
	for _, t := range r.Network.RouteTables() {
		for _, route := range t.Routes {
			if from == "" && slices.Contains(t.SubnetIDs, i.SubnetID) && strings.HasPrefix(route.Target, "nat-") {
				from = network.GatewayAddress(route.Target)
			}
		}
	}
	address, err := netip.ParseAddr(from)
	return err == nil && slices.ContainsFunc(c.PublicCIDRs, func(text string) bool {
		block, err := netip.ParsePrefix(text)
		return err == nil && block.Contains(address)
	})
}
