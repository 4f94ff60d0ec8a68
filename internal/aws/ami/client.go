// Package ami resolves the selector terms of an EC2NodeClass to AMIs.
//
// In: selector terms, and the Kubernetes version of the control plane.
// Out: images with their requirements on instance types, and the terms that matched no image.
// Never: a shorter list after a failed lookup, because a failed lookup is an error.
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
	parameters map[string]cachedParameter // by name
}

// cachedParameter is a cached value of an SSM parameter. Each NodeClass is reconciled once a minute, but AWS changes
// the parameters only a few times a month.
type cachedParameter struct {
	value string    // empty if SSM has no such parameter
	until time.Time // when the cache entry expires
}

const (
	cacheTime        = 5 * time.Minute // validity of the value of a parameter
	cacheTimeMissing = time.Minute     // validity of the result that a parameter does not exist
)

// New returns a client with the endpoint, region and credentials of cfg.
func New(cfg aws.Config) *Client {
	cfg = awserr.ClientConfig(cfg)
	return &Client{ec2: awsec2.NewFromConfig(cfg), ssm: ssm.NewFromConfig(cfg), parameters: map[string]cachedParameter{}}
}

// Term selects images, by the first of these fields that is set: Alias, ID, SSMParameter, then Name and Tags together.
type Term struct {
	Alias        string            // "al2023@latest"
	ID           string            // "ami-0123"
	SSMParameter string            // name or ARN of a parameter that holds an image ID
	Name         string            // name of the AMI; EC2 interprets * and ? as wildcards
	Owner        string            // account ID, "self" or "amazon"; used only with Name and Tags
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

// Image is an AMI and the instance types that it is for.
type Image struct {
	ID         string    // "ami-0123"
	Name       string    // name of the AMI
	Arch       string    // "amd64" or "arm64"
	Created    time.Time // creation date of the AMI
	Deprecated bool      // EC2's deprecation time has passed
	// DriverLabel is the label of the instance types whose accelerators the image has drivers for. It is derived from
	// the image's name or description. It is empty for an image without drivers, and for an image selected by an alias.
	DriverLabel string
	// Disks are the sizes of the image's snapshots in GiB, by device.
	Disks map[string]int64
	// Requirements are the requirements on the labels of an instance type, sorted by key.
	Requirements []requirements.Requirement
}

// Unmatched is a term that matches no image, with the reason.
type Unmatched struct {
	Term   Term   // the selector term
	Reason string // for the condition's reason: "AMINotFound" or "UnsupportedAlias"
	Detail string // for the condition's message
}

// String returns the term and the detail.
func (u Unmatched) String() string { return u.Term.String() + ": " + u.Detail }

// Accepts reports whether an instance type with these labels can start from the image.
func (i Image) Accepts(labels requirements.Labels) bool {
	needs, invalid := requirements.All(i.Requirements...)
	return invalid == nil && needs.Accepts(labels)
}

// For returns the first image that accepts an instance type with these labels; false if there is none. images must have
// the order in which the method Images returns them.
func For(images []Image, labels requirements.Labels) (Image, bool) {
	for _, i := range images {
		if i.Accepts(labels) {
			return i, true
		}
	}
	return Image{}, false
}

// Images resolves the terms. version is the Kubernetes version of the control plane: "1.33". Of several images for the
// same instance types it keeps one: the newest that is not deprecated, or the newest if all are deprecated. The images
// are sorted newest first, then by ID. The second result has the terms that match no image.
func (d *Client) Images(ctx context.Context, version string, terms []Term) ([]Image, []Unmatched, error) {
	var found []Image
	var unmatched []Unmatched
	for _, t := range terms {
		images, missing, err := d.resolve(ctx, version, t)
		if err != nil {
			return nil, nil, fmt.Errorf("resolve amiSelectorTerm %s: %w", t, err)
		}
		if missing != nil {
			unmatched = append(unmatched, *missing)
		}
		found = append(found, images...)
	}
	return selectBest(separateByDrivers(found)), unmatched, nil
}

// resolve returns the images that a term selects, or the reason if there are none.
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
	return nil, &Unmatched{t, "AMINotFound", "the term is empty: set alias, id, ssmParameter, name or tags"}, nil
}

// selectBest returns one image for each distinct set of requirements, as the method Images documents.
func selectBest(images []Image) []Image {
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(toInt(a.Deprecated)-toInt(b.Deprecated), b.Created.Compare(a.Created),
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

// toInt returns 1 for true and 0 for false, so that false sorts first.
func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// architecture returns the requirement for Kubernetes' name of an architecture, "amd64" or "arm64".
func architecture(arch string) requirements.Requirement {
	return requirements.Requirement{Key: catalog.LabelArch, Operator: requirements.In, Values: []string{arch}}
}
