package ec2

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The tags we write. All but TagUID are Karpenter's, so that its IAM policies
// allow our calls and it can take over our instances.
const (
	TagClusterPrefix = "kubernetes.io/cluster/" // + name = "owned"
	TagClusterName   = "eks:eks-cluster-name"
	TagNodePool      = "karpenter.sh/nodepool"
	TagNodeClaim     = "karpenter.sh/nodeclaim"
	TagNodeClass     = "karpenter.k8s.aws/ec2nodeclass"
	TagUID           = "joiner.sh/cluster-uid"
	TagName          = "Name"
)

// Tags returns the tags of what a claim of this cluster makes: the user's,
// under ours. claim may be empty, for what several claims share. A Name of the
// user's wins.
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

// ReservedTag reports whether a user may not set the tag, because it says who owns an instance.
func ReservedTag(key string) bool {
	switch key {
	case TagClusterName, TagNodePool, TagNodeClaim, TagNodeClass, TagUID:
		return true
	}
	return strings.HasPrefix(key, TagClusterPrefix)
}

// Ownership is whose an instance, or another thing of EC2, is.
type Ownership string

// The verdicts.
const (
	// Ours carries our cluster's name and UID.
	Ours Ownership = "Ours"
	// SameName has this cluster's name and another UID: it belongs to another cluster with the same name. It is reported
	// and never changed.
	SameName Ownership = "Namesake"
	// Legacy carries our cluster's name, TagNodePool and no UID: launched by Karpenter. It is
	// ours only if a NodeClaim or Node of our cluster carries its provider id.
	Legacy Ownership = "Legacy"
	// Foreign carries the tags of another cluster, a node group or an Auto Scaling group.
	Foreign Ownership = "Foreign"
	// Unmarked carries too few tags to say whose it is, or none. It is never touched. Where a NodeClaim has it, its tags were removed.
	Unmarked Ownership = "Unmarked"
)

// The tags of instances that a node group or an Auto Scaling group manages. AWS keeps users from removing the second.
const (
	tagNodeGroup    = "eks:nodegroup-name"
	tagScalingGroup = "aws:autoscaling:groupName"
)

// Owner says whose a thing with these tags is.
func (c Cluster) Owner(tags map[string]string) Ownership {
	name, ok := tags[TagClusterName]
	named := ok && name == c.Name || !ok && tags[TagClusterPrefix+c.Name] == "owned"
	uid, marked := tags[TagUID]
	_, hasPool := tags[TagNodePool]
	switch {
	case named && marked && uid == c.UID:
		return Ours
	case named && marked:
		return SameName
	case c.isOfAnother(tags):
		return Foreign
	case named && hasPool:
		return Legacy
	}
	return Unmarked
}

// isOfAnother reports whether tags name another owner: a cluster, a node group or an Auto Scaling group.
func (c Cluster) isOfAnother(tags map[string]string) bool {
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
