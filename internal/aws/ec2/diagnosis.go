package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// maxInstances is the number of instances after which a diagnosis reads no further page.
const maxInstances = 20_000

// InstancesForDiagnosis returns the instances with our cluster's name, sorted by ID and without their console output.
// It includes instances that ended in the last hour, because their end may explain a missing node. cut describes how
// the list was cut off; it is empty for a complete list.
func (d *Client) InstancesForDiagnosis(ctx context.Context) (found []diagnosis.Instance, cut string, err error) {
	byID := map[string]diagnosis.Instance{} // pages may repeat an instance
	pages := awsec2.NewDescribeInstancesPaginator(d.reads, &awsec2.DescribeInstancesInput{
		MaxResults: aws.Int32(1000),
		Filters:    []awstypes.Filter{filter("tag-key", TagNodePool), filter("tag:"+TagClusterName, d.cluster.Name)},
	})
	for pages.HasMorePages() {
		if len(byID) >= maxInstances {
			cut = fmt.Sprintf("only the first %d instances were read", len(byID))
			break
		}
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, "", awserr.Classify("DescribeInstances", err)
		}
		for _, r := range page.Reservations {
			for _, described := range r.Instances {
				i := d.fromInstance(described)
				byID[i.ID] = diagnosis.Instance{ID: i.ID, Type: i.Type, State: string(i.State), StateReason: i.StateReason, Launched: i.Launched,
					Claim: i.Tags[TagNodeClaim], Class: i.Tags[TagNodeClass], UID: i.Tags[TagUID], Image: i.ImageID, Subnet: i.SubnetID,
					Groups: i.SecurityGroups, Profile: i.Profile, PrivateDNS: i.PrivateDNS}
			}
		}
	}
	delete(byID, "") // an instance without ID
	found = make([]diagnosis.Instance, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		found = append(found, byID[id])
	}
	return found, cut, nil
}
