// Package network finds the subnets and security groups that nodes go into.
//
// In: selector terms, and the VPC of the cluster.
// Out: subnets with their zones and free addresses, security groups, and the terms that found nothing.
// Never: a change to a network, or a choice between instance types.
package network

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/fault"
)

// Door is the way to EC2's networks. It is safe for concurrent use.
type Door struct{ client *awsec2.Client }

// New returns the door. Endpoint, region and credentials are those of cfg.
func New(cfg aws.Config) *Door {
	cfg = fault.Genuine(cfg)
	return &Door{client: awsec2.NewFromConfig(cfg)}
}

// Term selects subnets or security groups: by ID if that is set, else by Name
// (group names only), else by Tags, all of which must match. The tag value "*"
// means any value.
type Term struct {
	ID   string
	Name string // of a security group: its group name, not its tag Name
	Tags map[string]string
}

// String writes the term as a user would: "id=subnet-1" or "tags{a=b,c=*}".
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

// filters returns EC2's filters for the term, under EC2's names for id and name.
func (t Term) filters(id, name string) []awstypes.Filter {
	switch {
	case t.ID != "":
		return []awstypes.Filter{{Name: aws.String(id), Values: []string{t.ID}}}
	case t.Name != "":
		return []awstypes.Filter{{Name: aws.String(name), Values: []string{t.Name}}}
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

// empty reports whether the term selects by nothing: EC2 would answer with all there is.
func (t Term) empty() bool { return t.ID == "" && t.Name == "" && len(t.Tags) == 0 }

// scoped adds the VPC, when it is known: a tag that other clusters of the
// account use as well must not bring their networks in.
func scoped(filters []awstypes.Filter, vpc string) []awstypes.Filter {
	if vpc == "" {
		return filters
	}
	return append(filters, awstypes.Filter{Name: aws.String("vpc-id"), Values: []string{vpc}})
}

// find asks for each term in turn and gathers what is found by id; unmatched
// are the terms that found nothing.
func find[T any](ctx context.Context, terms []Term, ask func(context.Context, Term) (map[string]T, error)) (found map[string]T, unmatched []Term, err error) {
	found = map[string]T{}
	for _, t := range terms {
		if t.empty() {
			unmatched = append(unmatched, t)
			continue
		}
		some, err := ask(ctx, t)
		switch {
		case fault.Is(err, fault.Gone), fault.Is(err, fault.Misconfigured) && t.ID != "":
			// An id that is malformed or not there: the term's author is told, the others go on.
			unmatched = append(unmatched, t)
			continue
		case err != nil:
			return nil, nil, err
		case len(some) == 0:
			unmatched = append(unmatched, t)
		}
		maps.Copy(found, some)
	}
	return found, unmatched, nil
}
