package ec2

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
)

// The actions in this file change an existing network. Users call them to fix a network.

type authorizeIn struct {
	GroupId       string
	IpPermissions []permission
}

func authorizeEgress(c *api.Call, in *authorizeIn) (api.Done, error) {
	g, rules, err := groupAndRules(c, in)
	if err != nil {
		return api.Done{}, err
	}
	g.Egress = append(g.Egress, rules...)
	return api.Done{Return: true}, nil
}

func authorizeIngress(c *api.Call, in *authorizeIn) (api.Done, error) {
	g, rules, err := groupAndRules(c, in)
	if err != nil {
		return api.Done{}, err
	}
	g.Ingress = append(g.Ingress, rules...)
	return api.Done{Return: true}, nil
}

// groupAndRules returns the security group of the request, and the rules that the request adds to the group.
func groupAndRules(c *api.Call, in *authorizeIn) (*network.SecurityGroup, []network.Rule, error) {
	g := c.Region.Network.SecurityGroup(in.GroupId)
	if g == nil {
		return nil, nil, &failure.Error{Code: "InvalidGroup.NotFound", Message: "The security group '" + in.GroupId + "' does not exist"}
	}
	if len(in.IpPermissions) == 0 {
		return nil, nil, &failure.Error{Code: "MissingParameter", Message: "The request must contain the parameter ipPermissions"}
	}
	var rules []network.Rule
	for _, p := range in.IpPermissions {
		r := network.Rule{Protocol: p.IpProtocol, From: -1, To: -1} // all ports
		if p.FromPort != nil && p.ToPort != nil {
			r.From, r.To = *p.FromPort, *p.ToPort
		}
		for _, block := range p.IpRanges {
			r.CIDRs = append(r.CIDRs, block.CidrIp)
		}
		for _, pair := range p.Groups {
			r.Groups = append(r.Groups, pair.GroupId)
		}
		rules = append(rules, r)
	}
	return g, rules, nil
}

type createRouteIn struct {
	RouteTableId         string
	DestinationCidrBlock string
	NatGatewayId         string
	GatewayId            string
}

func createRoute(c *api.Call, in *createRouteIn) (api.Done, error) {
	tables := c.Region.Network.RouteTables()
	i := slices.IndexFunc(tables, func(t *network.RouteTable) bool { return t.ID == in.RouteTableId })
	switch {
	case i < 0:
		return api.Done{}, &failure.Error{Code: "InvalidRouteTableID.NotFound", Message: "The routeTable ID '" +
			in.RouteTableId + "' does not exist"}
	case slices.ContainsFunc(tables[i].Routes, func(r network.Route) bool { return r.Destination == in.DestinationCidrBlock }):
		return api.Done{}, &failure.Error{Code: "RouteAlreadyExists", Message: "The route identified by " +
			in.DestinationCidrBlock + " already exists."}
	case in.NatGatewayId == "" && in.GatewayId == "":
		return api.Done{}, &failure.Error{Code: "MissingParameter", Message: "The request must contain exactly one of gatewayId, natGatewayId"}
	}
	tables[i].Routes = append(tables[i].Routes,
		network.Route{Destination: in.DestinationCidrBlock, Target: api.Or(in.NatGatewayId, in.GatewayId)})
	return api.Done{Return: true}, nil
}

func replaceRoute(c *api.Call, in *createRouteIn) (api.Done, error) {
	tables := c.Region.Network.RouteTables()
	i := slices.IndexFunc(tables, func(t *network.RouteTable) bool { return t.ID == in.RouteTableId })
	if i < 0 {
		return api.Done{}, &failure.Error{Code: "InvalidRouteTableID.NotFound", Message: "The routeTable ID '" +
			in.RouteTableId + "' does not exist"}
	}
	routes := slices.Clone(tables[i].Routes)
	k := slices.IndexFunc(routes, func(r network.Route) bool { return r.Destination == in.DestinationCidrBlock })
	if k < 0 {
		return api.Done{}, &failure.Error{Code: "InvalidParameterValue", Message: "There is no route defined for '" +
			in.DestinationCidrBlock + "' in the route table. Use CreateRoute instead."}
	}
	if in.NatGatewayId == "" && in.GatewayId == "" {
		return api.Done{}, &failure.Error{Code: "MissingParameter", Message: "The request must contain exactly one of gatewayId, natGatewayId"}
	}
	routes[k] = network.Route{Destination: in.DestinationCidrBlock, Target: api.Or(in.NatGatewayId, in.GatewayId)}
	tables[i].Routes = routes
	return api.Done{Return: true}, nil
}
