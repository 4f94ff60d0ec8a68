package lab

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// unresolved says that the name of the API server is not found from within the VPC, nil if it is. Where the endpoint is private alone, only
// names of the VPC's own hosts lead to it.
func unresolved(r *world.Region, c *world.Cluster) error {
	i := slices.IndexFunc(r.VPCs(), func(v *world.VPC) bool { return v.ID == c.VPCID })
	if i < 0 {
		return nil
	}
	v := r.VPCs()[i]
	if v.Resolves() && !(v.NoDNSHostnames && c.PrivateAccess && c.NoPublicAccess) {
		return nil
	}
	host := c.Endpoint
	if u, err := url.Parse(c.Endpoint); err == nil {
		host = u.Hostname()
	}
	return errors.New("dial tcp: lookup " + host + ": no such host")
}

// admitted says whether the cluster's endpoint takes packets of an instance: by its private address, or from an address that it does not shut out.
func admitted(r *world.Region, c *world.Cluster, i world.Instance) bool {
	if c.PrivateAccess || len(c.PublicCIDRs) == 0 {
		return true
	}
	if c.NoPublicAccess {
		return false
	}
	from := i.PublicIP
	for _, t := range r.RouteTables() {
		for _, route := range t.Routes {
			if from == "" && slices.Contains(t.SubnetIDs, i.SubnetID) && strings.HasPrefix(route.Target, "nat-") {
				from = world.GatewayAddress(route.Target)
			}
		}
	}
	address, err := netip.ParseAddr(from)
	return err == nil && slices.ContainsFunc(c.PublicCIDRs, func(text string) bool {
		block, err := netip.ParsePrefix(text)
		return err == nil && block.Contains(address)
	})
}
