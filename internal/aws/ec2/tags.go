package ec2

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The tags that Joiner sets. All except TagUID are Karpenter's, so IAM policies for Karpenter allow our calls, and
// Karpenter can take over our instances.
const (
	TagClusterPrefix = "kubernetes.io/cluster/" // followed by the cluster's name; the value is "owned"
	TagClusterName   = "eks:eks-cluster-name"
	TagNodePool      = "karpenter.sh/nodepool"
	TagNodeClaim     = "karpenter.sh/nodeclaim"
	TagNodeClass     = "karpenter.k8s.aws/ec2nodeclass"
	TagUID           = "joiner.sh/cluster-uid"
	TagName          = "Name"
)

// Tags returns the tags of a resource of this cluster: the user's tags and Joiner's. For an equal key Joiner's tag
// wins, except for Name. claim is the NodeClaim that the resource is created for; it is empty for a resource that
// several claims share.
func (c Cluster) Tags(user map[string]string, nodePool, nodeClass, claim string) map[string]string {
	tags := map[string]string{}
	if claim != "" {
		tags[TagName] = claim
	}
	maps.Copy(tags, user)
	tags[TagClusterPrefix+c.Name] = "owned"
	tags[TagClusterName] = c.Name
	tags[TagNodePool] = nodePool
	tags[TagNodeClass] = nodeClass
	tags[TagUID] = c.UID
	if claim != "" {
		tags[TagNodeClaim] = claim
	}
	return tags
}

// ReservedTag reports whether a user must not set a tag with this key, because the tag identifies the owner of an
// instance.
func ReservedTag(key string) bool {
	switch key {
	case TagClusterName, TagNodePool, TagNodeClaim, TagNodeClass, TagUID:
		return true
	}
	return strings.HasPrefix(key, TagClusterPrefix)
}

// Ownership is the owner of an EC2 resource, derived from its tags.
type Ownership string

// The ownerships.
const (
	// Ours: the resource carries our cluster's name and UID.
	Ours Ownership = "Ours"
	// SameName: the resource carries our cluster's name and another UID. It belongs to another cluster with the same
	// name. Joiner reports the resource and never changes it.
	SameName Ownership = "Namesake"
	// Legacy: the instance carries our cluster's name and TagNodePool but no UID, because Karpenter launched it. It is
	// ours only if a NodeClaim or Node of our cluster has its provider ID.
	Legacy Ownership = "Legacy"
	// Foreign: the resource carries the tags of another cluster, a node group or an Auto Scaling group.
	Foreign Ownership = "Foreign"
	// Untagged: the resource carries too few tags to identify its owner. Joiner never changes it. If a NodeClaim refers
	// to the resource, a user or a program has removed its tags.
	Untagged Ownership = "Unmarked"
)

// The tags of instances that a node group or an Auto Scaling group manages. AWS does not let users remove
// tagScalingGroup.
const (
	tagNodeGroup    = "eks:nodegroup-name"
	tagScalingGroup = "aws:autoscaling:groupName"
)

// Owner returns the owner of a resource with these tags.
func (c Cluster) Owner(tags map[string]string) Ownership {
	name, ok := tags[TagClusterName]
	// Old versions of Karpenter do not set TagClusterName.
	hasName := ok && name == c.Name || !ok && tags[TagClusterPrefix+c.Name] == "owned"
	uid, hasUID := tags[TagUID]
	_, hasPool := tags[TagNodePool]
	switch {
	case hasName && hasUID && uid == c.UID:
		return Ours
	case hasName && hasUID:
		return SameName
	case c.hasOtherOwner(tags):
		return Foreign
	case hasName && hasPool:
		return Legacy
	}
	return Untagged
}

// hasOtherOwner reports whether tags name another owner: a cluster, a node group or an Auto Scaling group.
func (c Cluster) hasOtherOwner(tags map[string]string) bool {
	for key, value := range tags {
		cluster, isCluster := strings.CutPrefix(key, TagClusterPrefix)
		switch {
		case key == tagNodeGroup, key == tagScalingGroup, isCluster && cluster != c.Name,
			key == TagClusterName && value != c.Name, key == TagUID && value != c.UID:
			return true
		}
	}
	return false
}

func toTags(tags map[string]string) []awstypes.Tag {
	out := make([]awstypes.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, awstypes.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	return out
}

func fromTags(tags []awstypes.Tag) map[string]string {
	out := make(map[string]string, len(tags))
	for _, t := range tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

func filter(name string, values ...string) awstypes.Filter {
	return awstypes.Filter{Name: aws.String(name), Values: values}
}
