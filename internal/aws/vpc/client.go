// Package vpc resolves the selector terms of an EC2NodeClass to subnets and security groups.
//
// In: selector terms, and the VPC of the cluster.
// Out: subnets with their zones and free addresses, security groups, and the terms without a match. For a diagnosis:
// the DNS settings, routes, network ACLs, endpoints and NAT addresses of a VPC.
// Never: a change to a network, or a choice between instance types.
package vpc

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Client reads VPCs and their resources from EC2. It is safe for concurrent use.
type Client struct{ client *awsec2.Client }

// New returns a client with the endpoint, region and credentials of cfg.
func New(cfg aws.Config) *Client {
	cfg = awserr.ClientConfig(cfg)
	return &Client{client: awsec2.NewFromConfig(cfg)}
}

// Term selects subnets or security groups by the first of ID, Name and Tags that is set. Name is only for security
// groups. The tag value "*" matches any value.
type Term struct {
	ID   string            // "subnet-0123" or "sg-0123"
	Name string            // group name of a security group, not its tag Name
	Tags map[string]string // all must match
}

// String returns the term in the form "id=subnet-1" or "tags{a=b,c=*}".
func (t Term) String() string {
	switch {
	case t.ID != "":
		return "id=" + t.ID
	case t.Name != "":
		return "name=" + t.Name
	}
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(t.Tags)) {
		pairs = append(pairs, k+"="+t.Tags[k])
	}
	return "tags{" + strings.Join(pairs, ",") + "}"
}

// filters returns EC2's filters for the term. idFilter and nameFilter are the names of EC2's filters by ID and by Name.
func (t Term) filters(idFilter, nameFilter string) []awstypes.Filter {
	switch {
	case t.ID != "":
		return []awstypes.Filter{{Name: aws.String(idFilter), Values: []string{t.ID}}}
	case t.Name != "":
		return []awstypes.Filter{{Name: aws.String(nameFilter), Values: []string{t.Name}}}
	}
	var out []awstypes.Filter
	for _, k := range slices.Sorted(maps.Keys(t.Tags)) {
		if t.Tags[k] == "*" {
			out = append(out, awstypes.Filter{Name: aws.String("tag-key"), Values: []string{k}})
			continue
		}
		out = append(out, awstypes.Filter{Name: aws.String("tag:" + k), Values: []string{t.Tags[k]}})
	}
	return out
}

// isEmpty reports whether no field of the term is set. For such a term EC2 would return all resources.
func (t Term) isEmpty() bool { return t.ID == "" && t.Name == "" && len(t.Tags) == 0 }

// addVPCFilter adds a filter by VPC, unless vpc is empty. Without this filter, a tag that several clusters of the
// account use would also select the subnets and security groups of the other clusters.
func addVPCFilter(filters []awstypes.Filter, vpc string) []awstypes.Filter {
	if vpc == "" {
		return filters
	}
	return append(filters, awstypes.Filter{Name: aws.String("vpc-id"), Values: []string{vpc}})
}

// Miss is a term that matched no resource in the cluster's VPC.
type Miss struct {
	Term
	Elsewhere []string // IDs of other VPCs in which the term matches, sorted
}

// String returns the term, and the VPCs in which it matches.
func (m Miss) String() string {
	if len(m.Elsewhere) == 0 {
		return m.Term.String()
	}
	return m.Term.String() + " (only in " + strings.Join(m.Elsewhere, ", ") + ")"
}

// search finds resources of one kind, subnets or security groups.
type search[T any] struct {
	// describe returns the resources that the term selects, by ID. Unless vpc is empty, they are in the VPC.
	describe func(ctx context.Context, t Term, vpc string) (map[string]T, error)
	vpcOf    func(T) string // returns the ID of a resource's VPC
}

// find returns the resources that any of the terms selects, by ID, and the terms that select none. It searches only the
// VPC if vpc is not empty.
func (s search[T]) find(ctx context.Context, vpc string, terms []Term) (found map[string]T, misses []Miss, err error) {
	found = map[string]T{}
	for _, t := range terms {
		selected, err := s.findTerm(ctx, t, vpc)
		if err != nil {
			return nil, nil, err
		}
		if len(selected) == 0 {
			misses = append(misses, Miss{t, s.elsewhere(ctx, t, vpc)})
		}
		maps.Copy(found, selected)
	}
	return found, misses, nil
}

// findTerm returns the resources that one term selects, by ID.
func (s search[T]) findTerm(ctx context.Context, t Term, vpc string) (map[string]T, error) {
	if t.isEmpty() {
		return nil, nil
	}
	selected, err := s.describe(ctx, t, vpc)
	if awserr.Is(err, awserr.Gone) || awserr.Is(err, awserr.Misconfigured) && t.ID != "" {
		// The ID does not exist (Gone) or is malformed (Misconfigured): find returns the term as a miss.
		return nil, nil
	}
	return selected, err
}

// elsewhere returns the IDs of the other VPCs in which the term matches, sorted. The result is only for a message, so
// errors are ignored.
func (s search[T]) elsewhere(ctx context.Context, t Term, vpc string) []string {
	if vpc == "" {
		return nil
	}
	selected, err := s.findTerm(ctx, t, "")
	if err != nil {
		return nil
	}
	vpcs := map[string]bool{}
	for _, resource := range selected {
		vpcs[s.vpcOf(resource)] = true
	}
	return slices.Sorted(maps.Keys(vpcs))
}
