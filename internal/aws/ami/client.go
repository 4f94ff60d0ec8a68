// Package ami resolves the selector terms of an EC2NodeClass to AMIs.
//
// In: selector terms, and the Kubernetes version of the control plane.
// Out: images with what they require of an instance type, and the terms that found nothing.
// Never: a guess: an image that could not be looked up is an error, not a shorter list.
package ami

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Client is the client for AMIs and for the SSM parameters that name them. It is safe for concurrent use.
type Client struct {
	ec2 *awsec2.Client
	ssm *ssm.Client

	mu         sync.Mutex
	parameters map[string]parameter // by name
}

// parameter is a value that SSM gave, kept for a while: a NodeClass is looked
// at each minute, its parameters change a few times a month.
type parameter struct {
	value string
	until time.Time
}

// How long a parameter is kept, and how long it is believed that there is none.
const (
	remember        = 5 * time.Minute
	rememberMissing = time.Minute
)

// New returns a client with the endpoint, region and credentials of cfg.
func New(cfg aws.Config) *Client {
	cfg = awserr.Genuine(cfg)
	return &Client{ec2: awsec2.NewFromConfig(cfg), ssm: ssm.NewFromConfig(cfg), parameters: map[string]parameter{}}
}

// Term selects images. Of its fields the first that is set, in this order,
// counts: Alias, ID, SSMParameter, then Name and Tags together.
type Term struct {
	Alias        string            // "al2023@latest"
	ID           string            // "ami-0123"
	SSMParameter string            // name or ARN of a parameter that holds an image id
	Name         string            // EC2 reads * and ? in it as wildcards
	Owner        string            // account id, "self" or "amazon"
	Tags         map[string]string // "*": any value
}

// String writes the term as a user would: "alias=al2023@latest".
func (t Term) String() string {
	switch {
	case t.Alias != "":
		return "alias=" + t.Alias
	case t.ID != "":
		return "id=" + t.ID
	case t.SSMParameter != "":
		return "ssmParameter=" + t.SSMParameter
	}
	var parts []string
	if t.Name != "" {
		parts = append(parts, "name="+t.Name)
	}
	for k, v := range t.Tags {
		parts = append(parts, "tag:"+k+"="+v)
	}
	slices.Sort(parts)
	if t.Owner != "" {
		parts = append(parts, "owner="+t.Owner)
	}
	return strings.Join(parts, " ")
}

// Image is a machine image, and which instance types it is for.
type Image struct {
	ID         string    // "ami-0123"
	Name       string    // of the AMI
	Arch       string    // "amd64" or "arm64"
	Created    time.Time // creation date of the AMI
	Deprecated bool      // EC2's deprecation time has passed
	// Accelerated is the label of the accelerators for which the image has drivers, by its name or its description. It is empty for
	// other images, and for those that an alias names.
	Accelerated string
	// Disks are the sizes of the image's snapshots in GiB, by device.
	Disks map[string]int64
	// Requirements are what an instance type's labels must satisfy, sorted by key.
	Requirements []requirements.Requirement
}

// Unmatched is a term that found no image, and why.
type Unmatched struct {
	Term   Term   // the selector term
	Reason string // "AMINotFound" or "UnsupportedAlias", as conditions have it
	Detail string // for the condition's message
}

// String says which term it is and what is wrong with it.
func (u Unmatched) String() string { return u.Term.String() + ": " + u.Detail }

// Accepts reports whether an instance type with these labels can start from the image.
func (i Image) Accepts(labels requirements.Labels) bool {
	needs, wrong := requirements.All(i.Requirements...)
	return wrong == nil && needs.Accepts(labels)
}

// For returns the image that an instance type with these labels starts from:
// the first that accepts it. images are in the order of Images.
func For(images []Image, labels requirements.Labels) (Image, bool) {
	for _, i := range images {
		if i.Accepts(labels) {
			return i, true
		}
	}
	return Image{}, false
}

// Images resolves the terms for a control plane of a Kubernetes version,
// "1.33". Of images for the same types it keeps the best: one that is not
// deprecated, then the newest. The result is sorted newest first, then by id.
func (d *Client) Images(ctx context.Context, version string, terms []Term) ([]Image, []Unmatched, error) {
	var found []Image
	var unmatched []Unmatched
	for _, t := range terms {
		images, miss, err := d.resolve(ctx, version, t)
		if err != nil {
			return nil, nil, fmt.Errorf("resolve amiSelectorTerm %s: %w", t, err)
		}
		if miss != nil {
			unmatched = append(unmatched, *miss)
		}
		found = append(found, images...)
	}
	return best(suited(found)), unmatched, nil
}

func (d *Client) resolve(ctx context.Context, version string, t Term) ([]Image, *Unmatched, error) {
	switch {
	case t.Alias != "":
		return d.byAlias(ctx, version, t)
	case t.ID != "":
		return d.describe(ctx, t, []string{t.ID}, nil)
	case t.SSMParameter != "":
		return d.byParameter(ctx, t)
	case t.Name != "" || len(t.Tags) > 0:
		return d.describe(ctx, t, nil, nil)
	}
	return nil, &Unmatched{t, "AMINotFound", "the term selects by nothing: give an alias, id, ssmParameter, name or tags"}, nil
}

// best keeps one image per set of requirements.
func best(images []Image) []Image {
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(boolean(a.Deprecated)-boolean(b.Deprecated), b.Created.Compare(a.Created),
			cmp.Compare(b.Name, a.Name), cmp.Compare(a.ID, b.ID))
	})
	seen := map[string]bool{}
	var out []Image
	for _, i := range images {
		key := fmt.Sprint(i.Requirements)
		if !seen[key] {
			seen[key] = true
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b Image) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// architecture is the requirement that an image of EC2's architecture has.
func architecture(arch string) requirements.Requirement {
	return requirements.Requirement{Key: catalog.LabelArch, Operator: requirements.In, Values: []string{arch}}
}
