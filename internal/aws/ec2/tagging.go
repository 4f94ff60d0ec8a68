package ec2

import (
	"context"
	"fmt"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// LateTags returns the missing tags that an instance should have once its Node has joined: its claim, the cluster's name, and the
// Node's name as Name, unless the user set another one. IAM policies for Karpenter allow no other tags on running instances.
func (d *Client) LateTags(i Instance, claim, node string) map[string]string {
	out := map[string]string{}
	for key, value := range map[string]string{TagNodeClaim: claim, TagClusterName: d.cluster.Name} {
		if _, ok := i.Tags[key]; !ok {
			out[key] = value
		}
	}
	// At its launch it got the claim's name, for want of a better one.
	if name, ok := i.Tags[TagName]; !ok || name == claim && name != node {
		out[TagName] = node
	}
	return out
}

// OwnTags returns the tags by which an instance is known to be this cluster's, as it got them at its launch.
func (d *Client) OwnTags(nodePool, nodeClass, claim string) map[string]string {
	return d.cluster.Tags(nil, nodePool, nodeClass, claim)
}

// Tag puts tags onto an instance, over those of the same keys. It refuses (fault.Refused) what is not ours; proof is as for
// Terminate. An instance that EC2 does not know is fault.Gone.
func (d *Client) Tag(ctx context.Context, i Instance, proof Proof, tags map[string]string) error {
	if err := d.mayChange("CreateTags", i, proof); err != nil {
		return err
	}
	_, err := d.writes.CreateTags(ctx, &awsec2.CreateTagsInput{Resources: []string{i.ID}, Tags: toTags(tags)})
	if err != nil {
		return fmt.Errorf("tag instance %s: %w", i.ID, awserr.Sort("CreateTags", err))
	}
	return nil
}
