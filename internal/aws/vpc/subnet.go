package vpc

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Subnet is a subnet, read from EC2.
type Subnet struct {
	ID     string // "subnet-0123"
	Zone   string // "us-east-1a"
	ZoneID string // "use1-az1"
	VPC    string // ID of the VPC
	CIDR   string // IPv4; empty for an IPv6-only subnet
	Free   int    // free IPv4 addresses
	Public bool   // instances get a public address by default
	Name   string // value of the tag Name, empty if the subnet has none
}

// Subnets returns the subnets that any of the terms selects: most free addresses first, then by ID. It searches only
// the VPC if vpc is not empty. misses are the terms that match no subnet.
func (c *Client) Subnets(ctx context.Context, vpc string, terms []Term) (subnets []Subnet, misses []Miss, err error) {
	describe := func(ctx context.Context, t Term, vpc string) (map[string]Subnet, error) {
		// Terms for subnets have no Name, so the filter tag:Name is never used.
		return c.subnets(ctx, &awsec2.DescribeSubnetsInput{Filters: addVPCFilter(t.filters("subnet-id", "tag:Name"), vpc)})
	}
	found, misses, err := search[Subnet]{describe, func(s Subnet) string { return s.VPC }}.find(ctx, vpc, terms)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range found {
		subnets = append(subnets, s)
	}
	slices.SortFunc(subnets, func(a, b Subnet) int {
		return cmp.Or(cmp.Compare(b.Free, a.Free), cmp.Compare(a.ID, b.ID))
	})
	return subnets, misses, nil
}

func (c *Client) subnets(ctx context.Context, in *awsec2.DescribeSubnetsInput) (map[string]Subnet, error) {
	out := map[string]Subnet{}
	pages := awsec2.NewDescribeSubnetsPaginator(c.client, in, func(o *awsec2.DescribeSubnetsPaginatorOptions) { o.Limit = 500 })
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("DescribeSubnets", err)
		}
		for _, s := range page.Subnets {
			subnet := Subnet{ID: aws.ToString(s.SubnetId), Zone: aws.ToString(s.AvailabilityZone), ZoneID: aws.ToString(s.AvailabilityZoneId),
				VPC: aws.ToString(s.VpcId), CIDR: aws.ToString(s.CidrBlock), Free: int(aws.ToInt32(s.AvailableIpAddressCount)),
				Public: aws.ToBool(s.MapPublicIpOnLaunch)}
			for _, t := range s.Tags {
				if aws.ToString(t.Key) == "Name" {
					subnet.Name = aws.ToString(t.Value)
				}
			}
			if subnet.ID != "" && subnet.Zone != "" {
				out[subnet.ID] = subnet
			}
		}
	}
	return out, nil
}

// PerZone returns the subnet to use in each zone, by zone: the subnet with the most free addresses. Of several such
// subnets it returns the one with the lowest ID. It ignores subnets for which skip returns true. skip may be nil.
func PerZone(subnets []Subnet, skip func(Subnet) bool) map[string]Subnet {
	out := map[string]Subnet{}
	for _, s := range subnets {
		if skip != nil && skip(s) {
			continue
		}
		best, ok := out[s.Zone]
		if !ok || s.Free > best.Free || s.Free == best.Free && s.ID < best.ID {
			out[s.Zone] = s
		}
	}
	return out
}
