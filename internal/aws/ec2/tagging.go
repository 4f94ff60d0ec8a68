package ec2

import (
	"context"
	"fmt"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// MissingTags returns the tags to set on an instance after its Node has joined: the claim's and the cluster's name, if
// the instance lacks these tags. It adds the Node's name as the tag Name, unless the user has set another Name. IAM
// policies for Karpenter allow no other tags on running instances.
func (d *Client) MissingTags(i Instance, claim, node string) map[string]string {
	out := map[string]string{}
	for key, value := range map[string]string{TagNodeClaim: claim, TagClusterName: d.cluster.Name} {
		if _, ok := i.Tags[key]; !ok {
			out[key] = value
		}
	}
	// At launch the Name tag is the claim's name, because the Node's name is not known yet.
	if name, ok := i.Tags[TagName]; !ok || name == claim && name != node {
		out[TagName] = node
	}
	return out
}

// OwnershipTags returns the tags that identify an instance as this cluster's. Launch sets the same tags.
func (d *Client) OwnershipTags(nodePool, nodeClass, claim string) map[string]string {
	return d.cluster.Tags(nil, nodePool, nodeClass, claim)
}

// Tag sets tags on an instance and overwrites existing values. It refuses (awserr.Refused) to tag an instance that is
// not ours, given the caller's proof. The error is awserr.Gone if EC2 does not know the instance.
func (d *Client) Tag(ctx context.Context, i Instance, proof Proof, tags map[string]string) error {
	if err := d.checkOwnership("CreateTags", i, proof); err != nil {
		return err
	}
	_, err := d.writes.CreateTags(ctx, &awsec2.CreateTagsInput{Resources: []string{i.ID}, Tags: toTags(tags)})
	if err != nil {
		return fmt.Errorf("tag instance %s: %w", i.ID, awserr.Classify("CreateTags", err))
	}
	return nil
}
