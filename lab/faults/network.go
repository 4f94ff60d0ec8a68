package faults

import (
	"context"
	"fmt"
	"slices"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

func networkFaults() []Fault {
	const out443 = "nothing out to port 443"
	return []Fault{
		{
			Name:  "closed-group",
			What:  "the nodes' security group allows no outbound traffic",
			Check: "NET-1",
			Cause: out443,
			Smoke: true,
			Break: changeGroup(func(g *network.SecurityGroup) { g.Egress = nil }),
		},
		{
			Name:  "only-port-80-out",
			What:  "the nodes' security group allows outbound traffic to port 80 only",
			Check: "NET-1",
			Cause: out443,
			Break: changeGroup(func(g *network.SecurityGroup) {
				g.Egress = []network.Rule{{Protocol: "tcp", From: 80, To: 80, CIDRs: []string{"0.0.0.0/0"}}}
			})},
		{
			Name:  "only-udp-out",
			What:  "the nodes' security group allows outbound UDP, but not TCP",
			Check: "NET-1",
			Cause: out443,
			Break: changeGroup(func(g *network.SecurityGroup) {
				g.Egress = []network.Rule{{Protocol: "udp", From: 0, To: 65535, CIDRs: []string{"0.0.0.0/0"}}}
			})},
		{
			Name:             "kubelet-port-closed",
			What:             "the nodes' security group denies traffic from the control plane",
			Check:            "NET-1",
			Cause:            "do not let the control plane reach kubelets at port 10250",
			ExpectSuspicious: true, Break: changeGroup(func(g *network.SecurityGroup) { g.Ingress = nil })},
		{
			Name:  "no-route",
			What:  "the nodes' subnet has only the local route",
			Check: "NET-4",
			Cause: "has no route out",
			Smoke: true,
			Break: changeSubnet(func(s *Scene, _ *network.Subnet, t *network.RouteTable) {
				t.Routes = t.Routes[:1]
			})},
		{
			Name:  "subnet-of-the-main-table",
			What:  "the nodes' subnet uses the VPC's main route table, which has only the local route",
			Check: "NET-4",
			Cause: "has no route out",
			Break: changeSubnet(func(_ *Scene, n *network.Subnet, t *network.RouteTable) {
				t.SubnetIDs, t.Main, t.Routes = nil, true, t.Routes[:1]
			}), IsExclusive: true},
		{
			Name:  "full-subnets",
			What:  "the nodes' subnet has no free addresses",
			Check: "NET-5",
			Cause: "its subnets are full",
			Break: changeSubnet(func(_ *Scene, n *network.Subnet, _ *network.RouteTable) {
				n.Free = 2 // below doctor's minimum for a node and its pods
			})},
	}
}

// changeGroup returns a Break function that gives the scene its own security group: a changed copy of the nodes' group.
func changeGroup(change func(*network.SecurityGroup)) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		return s.ChangeAWS(func(_ *world.World, _ time.Time) error {
			g, err := s.Lab.Estate.Region.Network.CreateSecurityGroup(s.Lab.Estate.VPC.ID, s.Name, "nodes of "+s.Name, nil)
			if err != nil {
				return err
			}
			g.Ingress, g.Egress = slices.Clone(s.Lab.Estate.NodeSG.Ingress), slices.Clone(s.Lab.Estate.NodeSG.Egress)
			change(g)
			s.Class.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{ID: g.ID}}
			return nil
		})
	}
}

// changeSubnet returns a Break function that gives the scene its own subnet and route table, with a default route to a
// NAT gateway. change changes the subnet and the table.
func changeSubnet(change func(*Scene, *network.Subnet, *network.RouteTable)) func(context.Context, *Scene) error {
	return func(_ context.Context, s *Scene) error {
		return s.ChangeAWS(func(_ *world.World, _ time.Time) error {
			e := s.Lab.Estate
			n, err := newSubnet(s)
			if err != nil {
				return err
			}
			t := e.Region.Network.CreateRouteTable(network.RouteTable{
				VPCID:     e.VPC.ID,
				SubnetIDs: []string{n.ID},
				Routes:    slices.Clone(routesOf(e, e.PrivateSubnets[0].ID)),
			})
			s.Class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{ID: n.ID}}
			change(s, n, t)
			return nil
		})
	}
}

// newSubnet creates a subnet in the upper half of the VPC's addresses, where only scenes have subnets.
func newSubnet(s *Scene) (*network.Subnet, error) {
	e := s.Lab.Estate
	base := e.VPC.CIDR.Addr().As4()
	for thirdByte := 255; thirdByte >= 128; thirdByte-- {
		cidr := fmt.Sprintf("%d.%d.%d.0/24", base[0], base[1], thirdByte)
		if n, err := e.Region.Network.CreateSubnet(e.VPC.ID, e.PrivateSubnets[0].Zone.Name, cidr, nil); err == nil {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the VPC %s has no free /24 block for another subnet", e.VPC.CIDR)
}

// routesOf returns the routes of the subnet's table: the local route and the default route.
func routesOf(e world.ClusterResources, subnetID string) []network.Route {
	for _, t := range e.Region.Network.RouteTables() {
		if slices.Contains(t.SubnetIDs, subnetID) {
			return t.Routes
		}
	}
	return nil
}
