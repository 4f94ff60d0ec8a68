package vpc

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// ACLs returns the network ACLs of a VPC, sorted by ID, with their entries sorted by number.
func (c *Client) ACLs(ctx context.Context, vpc string) ([]diagnosis.ACL, error) {
	pages := awsec2.NewDescribeNetworkAclsPaginator(c.client, &awsec2.DescribeNetworkAclsInput{Filters: vpcFilter(vpc)})
	all, err := readPages(ctx, "DescribeNetworkAcls", pages.HasMorePages,
		func(ctx context.Context) (*awsec2.DescribeNetworkAclsOutput, error) { return pages.NextPage(ctx) },
		func(p *awsec2.DescribeNetworkAclsOutput) []awstypes.NetworkAcl { return p.NetworkAcls })
	if err != nil {
		return nil, err
	}
	out := []diagnosis.ACL{}
	for _, n := range all {
		acl := diagnosis.ACL{ID: aws.ToString(n.NetworkAclId), Default: aws.ToBool(n.IsDefault)}
		for _, a := range n.Associations {
			acl.Subnets = append(acl.Subnets, aws.ToString(a.SubnetId))
		}
		for _, e := range n.Entries {
			entry := diagnosis.ACLEntry{
				Number:   int(aws.ToInt32(e.RuleNumber)),
				Out:      aws.ToBool(e.Egress),
				Deny:     e.RuleAction == awstypes.RuleActionDeny,
				Protocol: aws.ToString(e.Protocol),
				CIDR:     aws.ToString(e.CidrBlock) + aws.ToString(e.Ipv6CidrBlock), // EC2 sets one of the two
			}
			if e.PortRange != nil {
				entry.From, entry.To = int(aws.ToInt32(e.PortRange.From)), int(aws.ToInt32(e.PortRange.To))
			}
			acl.Entries = append(acl.Entries, entry)
		}
		slices.SortStableFunc(acl.Entries, func(a, b diagnosis.ACLEntry) int { return a.Number - b.Number })
		out = append(out, acl)
	}
	slices.SortFunc(out, func(a, b diagnosis.ACL) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}
