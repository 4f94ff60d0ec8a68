package vpc

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Group is a security group, read from EC2.
type Group struct {
	ID   string // "sg-0123"
	Name string // the group name, not the tag Name
	VPC  string // ID of the VPC
}

// Groups returns the security groups that any of the terms selects, sorted by ID. It searches only the VPC if vpc is
// not empty. misses are the terms that match no security group.
func (c *Client) Groups(ctx context.Context, vpc string, terms []Term) (groups []Group, misses []Miss, err error) {
	describe := func(ctx context.Context, t Term, vpc string) (map[string]Group, error) {
		return c.groups(ctx, &awsec2.DescribeSecurityGroupsInput{Filters: addVPCFilter(t.filters("group-id", "group-name"), vpc)})
	}
	found, misses, err := search[Group]{describe, func(g Group) string { return g.VPC }}.find(ctx, vpc, terms)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		groups = append(groups, found[id])
	}
	return groups, misses, nil
}

func (c *Client) groups(ctx context.Context, in *awsec2.DescribeSecurityGroupsInput) (map[string]Group, error) {
	out := map[string]Group{}
	pages := awsec2.NewDescribeSecurityGroupsPaginator(c.client, in, func(o *awsec2.DescribeSecurityGroupsPaginatorOptions) { o.Limit = 500 })
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("DescribeSecurityGroups", err)
		}
		for _, g := range page.SecurityGroups {
			if id := aws.ToString(g.GroupId); id != "" {
				out[id] = Group{ID: id, Name: aws.ToString(g.GroupName), VPC: aws.ToString(g.VpcId)}
			}
		}
	}
	return out, nil
}
