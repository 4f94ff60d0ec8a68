package faults

import (
	"context"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

func endpointFaults() []Fault {
	return []Fault{
		{
			Name:        "dns-support-off",
			What:        "the VPC has DNS support switched off",
			Check:       "NET-2",
			Cause:       "has DNS support switched off",
			IsExclusive: true,
			Break:       changeVPC(func(v *network.VPC, _ *ekscluster.Cluster) { v.NoDNSSupport = true })},
		{
			Name:        "private-endpoint-without-host-names",
			What:        "the endpoint is private only, and the VPC has DNS host names switched off",
			Check:       "NET-2",
			Cause:       "has DNS host names switched off",
			IsExclusive: true,
			Break: changeVPC(func(v *network.VPC, c *ekscluster.Cluster) {
				v.NoDNSHostnames, c.PrivateAccess, c.NoPublicAccess = true, true, true
			})},
		{
			Name:          "name-server-of-ones-own",
			What:          "the VPC's DHCP options name a server that does not know AWS's names",
			Check:         "NET-2",
			Cause:         "instances cannot resolve a name",
			IsExclusive:   true,
			NeedsInstance: true,
			Break:         changeVPC(func(v *network.VPC, _ *ekscluster.Cluster) { v.NameServers = []string{"10.0.0.53"} })},
		{
			Name:        "endpoint-for-others",
			What:        "the endpoint is public only, and allows the addresses of an office, but not the nodes' NAT gateway",
			Check:       "NET-3",
			Cause:       "lets in only 203.0.113.0/24",
			IsExclusive: true,
			Break:       changeVPC(func(_ *network.VPC, c *ekscluster.Cluster) { c.PublicCIDRs = []string{"203.0.113.0/24"} })},
	}
}

// changeVPC returns a Break function that changes the cluster's VPC and the cluster, and adds an undo function for
// both.
func changeVPC(change func(*network.VPC, *ekscluster.Cluster)) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		return s.ChangeAWS(func(*world.World, time.Time) error {
			v := s.Lab.Estate.VPC
			c, err := s.Lab.Estate.Region.EKS.Cluster(s.Lab.Cluster)
			if err != nil {
				return err
			}
			nameServers, noDNS, noHostnames := v.NameServers, v.NoDNSSupport, v.NoDNSHostnames
			cidrs, private, noPublic := c.PublicCIDRs, c.PrivateAccess, c.NoPublicAccess
			s.AddUndo(func(context.Context) error {
				return s.ChangeAWS(func(*world.World, time.Time) error {
					v.NameServers, v.NoDNSSupport, v.NoDNSHostnames = nameServers, noDNS, noHostnames
					c.PublicCIDRs, c.PrivateAccess, c.NoPublicAccess = cidrs, private, noPublic
					return nil
				})
			})
			change(v, c)
			return nil
		})
	}
}
