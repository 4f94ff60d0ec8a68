package ami

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// describe returns the images with the ids. If ids is empty, it returns the images that the term's name and tags
// select. If no image is found, it returns the reason. extra has further requirements besides the architecture, by
// image ID.
func (d *Client) describe(ctx context.Context, t Term, ids []string,
	extra map[string][]requirements.Requirement) ([]Image, *Unmatched, error) {
	in := &awsec2.DescribeImagesInput{
		IncludeDeprecated: aws.Bool(true),
		MaxResults:        aws.Int32(1000),
		Filters:           append(filters(t, ids), filter("state", "available")),
	}
	if len(ids) == 0 {
		in.Owners = owners(t)
	}
	var out []Image
	var unsupported []string // images with an architecture that nodes do not support
	pages := awsec2.NewDescribeImagesPaginator(d.ec2, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if awserr.Is(awserr.Classify("DescribeImages", err), awserr.Misconfigured) && len(ids) > 0 { // a malformed ID
			return nil, &Unmatched{t, "AMINotFound", awserr.Of(awserr.Classify("DescribeImages", err)).Error()}, nil
		}
		if err != nil {
			return nil, nil, awserr.Classify("DescribeImages", err)
		}
		for _, i := range page.Images {
			image, ok := imageOf(i, extra[aws.ToString(i.ImageId)])
			if !ok {
				unsupported = append(unsupported, image.ID+" is for "+string(i.Architecture))
				continue
			}
			out = append(out, image)
		}
	}
	if len(out) > 0 {
		return out, nil, nil
	}
	if len(unsupported) > 0 {
		return nil, &Unmatched{t, "AMINotFound", "nodes do not support these architectures: " + strings.Join(unsupported, ", ")}, nil
	}
	return nil, &Unmatched{t, "AMINotFound", "EC2 has no available image for this term that this account may use in this region"}, nil
}

// filters returns EC2's filters for the ids. If ids is empty, it returns the filters for the term's name and tags.
func filters(t Term, ids []string) []awstypes.Filter {
	if len(ids) > 0 {
		return []awstypes.Filter{filter("image-id", ids...)}
	}
	var out []awstypes.Filter
	if t.Name != "" {
		out = append(out, filter("name", t.Name))
	}
	for _, k := range slices.Sorted(maps.Keys(t.Tags)) {
		if t.Tags[k] == "*" {
			out = append(out, filter("tag-key", k))
			continue
		}
		out = append(out, filter("tag:"+k, t.Tags[k]))
	}
	return out
}

// owners returns the owners to which a search is limited; nil for no limit. A search by name is limited to trusted
// owners, because any account may publish an image under any name. A search by tags needs no limit, because each
// account sees only its own tags.
func owners(t Term) []string {
	switch {
	case t.Owner != "":
		return []string{t.Owner}
	case t.Name != "":
		return []string{"self", "amazon"}
	}
	return nil
}

// imageOf converts an image of EC2. extra has its requirements besides the architecture. The second result is false for
// an architecture that nodes do not support.
func imageOf(i awstypes.Image, extra []requirements.Requirement) (Image, bool) {
	out := Image{ID: aws.ToString(i.ImageId), Name: aws.ToString(i.Name)}
	switch i.Architecture {
	case awstypes.ArchitectureValuesX8664:
		out.Arch = "amd64"
	case awstypes.ArchitectureValuesArm64:
		out.Arch = "arm64"
	default:
		return out, false
	}
	out.Created = parseTime(aws.ToString(i.CreationDate))
	out.Disks = disksOf(i)
	if len(extra) == 0 { // not selected by an alias
		out.DriverLabel = driverLabel(out.Name, aws.ToString(i.Description))
	}
	if deprecation := parseTime(aws.ToString(i.DeprecationTime)); !deprecation.IsZero() {
		out.Deprecated = time.Now().After(deprecation)
	}
	out.Requirements = append([]requirements.Requirement{architecture(out.Arch)}, extra...)
	slices.SortFunc(out.Requirements, func(a, b requirements.Requirement) int { return cmp.Compare(a.Key, b.Key) })
	return out, true
}

func disksOf(i awstypes.Image) map[string]int64 {
	out := map[string]int64{}
	for _, m := range i.BlockDeviceMappings {
		if m.Ebs != nil && aws.ToInt32(m.Ebs.VolumeSize) > 0 {
			out[aws.ToString(m.DeviceName)] = int64(aws.ToInt32(m.Ebs.VolumeSize))
		}
	}
	return out
}

// parseTime reads EC2's "2025-05-01T10:00:00.000Z"; zero if it is not a time.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

func filter(name string, values ...string) awstypes.Filter {
	return awstypes.Filter{Name: aws.String(name), Values: values}
}

// byParameter resolves the term's SSMParameter.
func (d *Client) byParameter(ctx context.Context, t Term) ([]Image, *Unmatched, error) {
	id, ok, err := d.parameter(ctx, t.SSMParameter)
	switch {
	case err != nil:
		return nil, nil, err
	case !ok:
		return nil, &Unmatched{t, "AMINotFound", "SSM has no such parameter in this region"}, nil
	case !strings.HasPrefix(id, "ami-"):
		return nil, &Unmatched{t, "AMINotFound", fmt.Sprintf("the parameter holds %q, which is not an image id", id)}, nil
	}
	return d.describe(ctx, t, []string{id}, nil)
}
