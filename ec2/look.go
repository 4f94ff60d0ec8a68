package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/diagnosis"
)

// Witnessed returns the instances that carry our cluster's name, those too that ended in the last hour: how they ended may be
// why no node came of them. Sorted by id, without consoles.
func (d *Door) Witnessed(ctx context.Context) ([]diagnosis.Instance, error) {
	all, err := d.describe(ctx, &awsec2.DescribeInstancesInput{
		MaxResults: aws.Int32(1000),
		Filters:    []awstypes.Filter{filter("tag-key", TagNodePool), filter("tag:"+TagClusterName, d.cluster.Name)},
	})
	if err != nil {
		return nil, err
	}
	out := make([]diagnosis.Instance, 0, len(all))
	for _, i := range all {
		out = append(out, diagnosis.Instance{ID: i.ID, Type: i.Type, State: string(i.State), StateReason: i.StateReason, Launched: i.Launched,
			Claim: i.Tags[TagNodeClaim], Class: i.Tags[TagNodeClass], UID: i.Tags[TagUID], Image: i.ImageID, Subnet: i.SubnetID,
			Groups: i.SecurityGroups, Profile: i.Profile, PrivateDNS: i.PrivateDNS})
	}
	return out, nil
}
