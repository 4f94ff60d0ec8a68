package ami

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

// ImagesByID returns the images with the ids, sorted by ID. IDs without an image are left out.
func (d *Client) ImagesByID(ctx context.Context, ids []string) ([]diagnosis.Image, error) {
	out := []diagnosis.Image{}
	if len(ids) == 0 {
		return out, nil
	}
	pages := awsec2.NewDescribeImagesPaginator(d.ec2, &awsec2.DescribeImagesInput{
		IncludeDeprecated: aws.Bool(true), Filters: []awstypes.Filter{filter("image-id", ids...)}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("DescribeImages", err)
		}
		for _, i := range page.Images {
			out = append(out, diagnosedImage(i))
		}
	}
	slices.SortFunc(out, func(a, b diagnosis.Image) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// diagnosedImage converts an image of EC2 for a diagnosis. It keeps EC2's architecture, except that x86_64 is amd64.
func diagnosedImage(i awstypes.Image) diagnosis.Image {
	out := diagnosis.Image{
		ID:           aws.ToString(i.ImageId),
		Name:         aws.ToString(i.Name),
		Architecture: string(i.Architecture),
		State:        string(i.State),
	}
	if i.Architecture == awstypes.ArchitectureValuesX8664 {
		out.Architecture = "amd64"
	}
	for _, m := range i.BlockDeviceMappings {
		if m.Ebs != nil && aws.ToString(m.DeviceName) == aws.ToString(i.RootDeviceName) {
			out.SnapshotGiB = int(aws.ToInt32(m.Ebs.VolumeSize))
		}
	}
	return out
}
