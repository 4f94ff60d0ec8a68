package vpc

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/diagnosis"
)

func vpcFilter(vpc string) []awstypes.Filter {
	return []awstypes.Filter{{Name: aws.String("vpc-id"), Values: []string{vpc}}}
}

// readPages reads all pages of the call op and returns their items. more reports whether there is another page, next
// reads that page, and items returns the items of a page.
func readPages[Page, Item any](ctx context.Context, op string, more func() bool,
	next func(context.Context) (Page, error), items func(Page) []Item) ([]Item, error) {
	out := []Item{}
	for more() {
		page, err := next(ctx)
		if err != nil {
			return nil, awserr.Classify(op, err)
		}
		out = append(out, items(page)...)
	}
	return out, nil
}

// VPC returns the DNS settings of a VPC.
func (c *Client) VPC(ctx context.Context, vpc string) (diagnosis.VPC, error) {
	out := diagnosis.VPC{ID: vpc}
	for attribute, into := range map[awstypes.VpcAttributeName]*bool{
		awstypes.VpcAttributeNameEnableDnsSupport: &out.DNSSupport, awstypes.VpcAttributeNameEnableDnsHostnames: &out.DNSHostnames,
	} {
		got, err := c.client.DescribeVpcAttribute(ctx, &awsec2.DescribeVpcAttributeInput{VpcId: aws.String(vpc), Attribute: attribute})
		if err != nil {
			return diagnosis.VPC{}, awserr.Classify("DescribeVpcAttribute "+vpc, err)
		}
		// EC2 returns only the requested attribute; the other is nil.
		for _, v := range []*awstypes.AttributeBooleanValue{got.EnableDnsSupport, got.EnableDnsHostnames} {
			if v != nil {
				*into = aws.ToBool(v.Value)
			}
		}
	}
	return out, nil
}

// AllSubnets returns the subnets of a VPC, sorted by ID.
func (c *Client) AllSubnets(ctx context.Context, vpc string) ([]diagnosis.Subnet, error) {
	pages := awsec2.NewDescribeSubnetsPaginator(c.client, &awsec2.DescribeSubnetsInput{Filters: vpcFilter(vpc)})
	all, err := readPages(ctx, "DescribeSubnets", pages.HasMorePages,
		func(ctx context.Context) (*awsec2.DescribeSubnetsOutput, error) { return pages.NextPage(ctx) },
		func(p *awsec2.DescribeSubnetsOutput) []awstypes.Subnet { return p.Subnets })
	if err != nil {
		return nil, err
	}
	out := []diagnosis.Subnet{}
	for _, s := range all {
		subnet := diagnosis.Subnet{ID: aws.ToString(s.SubnetId), VPC: aws.ToString(s.VpcId), Zone: aws.ToString(s.AvailabilityZone),
			Free: int(aws.ToInt32(s.AvailableIpAddressCount)), Public: aws.ToBool(s.MapPublicIpOnLaunch), Tags: clusterTags(s.Tags)}
		if o := s.PrivateDnsNameOptionsOnLaunch; o != nil {
			subnet.HostnameType = string(o.HostnameType)
		}
		out = append(out, subnet)
	}
	slices.SortFunc(out, func(a, b diagnosis.Subnet) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// clusterTags returns those tags of a resource that name the cluster to which the resource belongs; nil if there are
// none.
func clusterTags(tags []awstypes.Tag) map[string]string {
	var out map[string]string
	for _, t := range tags {
		key := aws.ToString(t.Key)
		if !strings.HasPrefix(key, "kubernetes.io/cluster/") && key != "aws:eks:cluster-name" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = aws.ToString(t.Value)
	}
	return out
}

// Routes returns the route tables of a VPC, sorted by ID.
func (c *Client) Routes(ctx context.Context, vpc string) ([]diagnosis.RouteTable, error) {
	pages := awsec2.NewDescribeRouteTablesPaginator(c.client, &awsec2.DescribeRouteTablesInput{Filters: vpcFilter(vpc)})
	all, err := readPages(ctx, "DescribeRouteTables", pages.HasMorePages,
		func(ctx context.Context) (*awsec2.DescribeRouteTablesOutput, error) { return pages.NextPage(ctx) },
		func(p *awsec2.DescribeRouteTablesOutput) []awstypes.RouteTable { return p.RouteTables })
	if err != nil {
		return nil, err
	}
	out := []diagnosis.RouteTable{}
	for _, t := range all {
		table := diagnosis.RouteTable{ID: aws.ToString(t.RouteTableId)}
		for _, a := range t.Associations {
			table.Main = table.Main || aws.ToBool(a.Main)
			if id := aws.ToString(a.SubnetId); id != "" {
				table.Subnets = append(table.Subnets, id)
			}
		}
		for _, r := range t.Routes {
			table.Routes = append(table.Routes, routeOf(r))
		}
		out = append(out, table)
	}
	slices.SortFunc(out, func(a, b diagnosis.RouteTable) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// routeOf converts a route of EC2. EC2 sets one of the fields for the destination, and one of the fields for the
// target. If EC2 sets several, routeOf uses the first of its list.
func routeOf(r awstypes.Route) diagnosis.Route {
	out := diagnosis.Route{Blackhole: r.State == awstypes.RouteStateBlackhole}
	for _, destination := range []*string{r.DestinationCidrBlock, r.DestinationIpv6CidrBlock, r.DestinationPrefixListId} {
		if out.To == "" {
			out.To = aws.ToString(destination)
		}
	}
	for _, target := range []*string{r.NatGatewayId, r.GatewayId, r.TransitGatewayId, r.NetworkInterfaceId, r.VpcPeeringConnectionId,
		r.EgressOnlyInternetGatewayId, r.InstanceId, r.LocalGatewayId, r.CarrierGatewayId, r.CoreNetworkArn} {
		if out.Target == "" {
			out.Target = aws.ToString(target)
		}
	}
	return out
}

// Endpoints returns the VPC endpoints of a VPC, sorted by service.
func (c *Client) Endpoints(ctx context.Context, vpc string) ([]diagnosis.Endpoint, error) {
	pages := awsec2.NewDescribeVpcEndpointsPaginator(c.client, &awsec2.DescribeVpcEndpointsInput{Filters: vpcFilter(vpc)})
	all, err := readPages(ctx, "DescribeVpcEndpoints", pages.HasMorePages,
		func(ctx context.Context) (*awsec2.DescribeVpcEndpointsOutput, error) { return pages.NextPage(ctx) },
		func(p *awsec2.DescribeVpcEndpointsOutput) []awstypes.VpcEndpoint { return p.VpcEndpoints })
	if err != nil {
		return nil, err
	}
	out := []diagnosis.Endpoint{}
	for _, e := range all {
		out = append(out, diagnosis.Endpoint{
			Service: aws.ToString(e.ServiceName),
			State:   string(e.State),
			Private: aws.ToBool(e.PrivateDnsEnabled),
		})
	}
	slices.SortFunc(out, func(a, b diagnosis.Endpoint) int { return strings.Compare(a.Service, b.Service) })
	return out, nil
}

// AllGroups returns the security groups of a VPC with their rules, sorted by ID.
func (c *Client) AllGroups(ctx context.Context, vpc string) ([]diagnosis.Group, error) {
	pages := awsec2.NewDescribeSecurityGroupsPaginator(c.client, &awsec2.DescribeSecurityGroupsInput{Filters: vpcFilter(vpc)})
	all, err := readPages(ctx, "DescribeSecurityGroups", pages.HasMorePages,
		func(ctx context.Context) (*awsec2.DescribeSecurityGroupsOutput, error) { return pages.NextPage(ctx) },
		func(p *awsec2.DescribeSecurityGroupsOutput) []awstypes.SecurityGroup { return p.SecurityGroups })
	if err != nil {
		return nil, err
	}
	out := []diagnosis.Group{}
	for _, g := range all {
		out = append(out, diagnosis.Group{ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName), VPC: aws.ToString(g.VpcId),
			In: rulesOf(g.IpPermissions), Out: rulesOf(g.IpPermissionsEgress), Tags: clusterTags(g.Tags)})
	}
	slices.SortFunc(out, func(a, b diagnosis.Group) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func rulesOf(permissions []awstypes.IpPermission) []diagnosis.Rule {
	var out []diagnosis.Rule
	for _, p := range permissions {
		r := diagnosis.Rule{Protocol: aws.ToString(p.IpProtocol), From: int(aws.ToInt32(p.FromPort)), To: int(aws.ToInt32(p.ToPort))}
		for _, block := range p.IpRanges {
			r.CIDRs = append(r.CIDRs, aws.ToString(block.CidrIp))
		}
		for _, block := range p.Ipv6Ranges {
			r.CIDRs = append(r.CIDRs, aws.ToString(block.CidrIpv6))
		}
		for _, g := range p.UserIdGroupPairs {
			r.Groups = append(r.Groups, aws.ToString(g.GroupId))
		}
		for _, l := range p.PrefixListIds {
			r.Lists = append(r.Lists, aws.ToString(l.PrefixListId))
		}
		out = append(out, r)
	}
	return out
}

// NATAddresses returns the public addresses of the available NAT gateways of a VPC, sorted.
func (c *Client) NATAddresses(ctx context.Context, vpc string) ([]string, error) {
	pages := awsec2.NewDescribeNatGatewaysPaginator(c.client, &awsec2.DescribeNatGatewaysInput{Filter: vpcFilter(vpc)})
	all, err := readPages(ctx, "DescribeNatGateways", pages.HasMorePages,
		func(ctx context.Context) (*awsec2.DescribeNatGatewaysOutput, error) { return pages.NextPage(ctx) },
		func(p *awsec2.DescribeNatGatewaysOutput) []awstypes.NatGateway { return p.NatGateways })
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, g := range all {
		for _, a := range g.NatGatewayAddresses {
			if ip := aws.ToString(a.PublicIp); ip != "" && g.State == awstypes.NatGatewayStateAvailable {
				out = append(out, ip)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}
