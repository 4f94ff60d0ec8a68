// Package permissions lists what the controller may do: the IAM statements of its role (Policies) and the RBAC rules of
// its service account (Rules), each with the reason for it. The chart, Terraform and CloudFormation are written from
// these lists.
//
// In: the cluster's name, account and region; the roles of its nodes and its interruption queue.
// Out: IAM policies statement by statement, RBAC rules, and whether a rule allows a request.
// Never: a permission that no call needs, a permission to change resources without the cluster's tags, or a call to AWS
// or Kubernetes.
package permissions

import (
	"errors"
	"fmt"
	"strings"
)

// Scope is the cluster, account and region that the policies are for.
type Scope struct {
	Partition string // "aws", "aws-cn", "aws-us-gov"; empty: the partition of the region
	Account   string // 12 digits
	Region    string // "us-east-1"
	Cluster   string // name of the EKS cluster

	// UID is the UID of the cluster's kube-system namespace:
	//
	//	kubectl get namespace kube-system -o jsonpath={.metadata.uid}
	//
	// With it, IAM denies changes to resources of another cluster with the same name, in the same account and region.
	// Empty: unknown, for instance because the cluster does not exist yet. Then only the controller prevents such
	// changes.
	UID string

	// NodeRoles are the names of the IAM roles of nodes, with their paths; * matches any characters.
	// Empty: KarpenterNodeRole-<cluster>, the name in Karpenter's guide.
	NodeRoles []string
	// Queue is the name of the interruption queue. Empty: the cluster's name.
	Queue string
	// Parameters are the names of parameters of Systems Manager that EC2NodeClasses select images by, besides those of
	// AWS; * stands for any characters.
	Parameters []string
}

// anyUID replaces an unknown UID in conditions: the tag must exist, with any value.
const anyUID = "*"

// complete validates the scope and sets defaults.
func (s Scope) complete() (Scope, error) {
	if s.Account == "" || s.Region == "" || s.Cluster == "" {
		return Scope{}, errors.New("make IAM policies: account, region and cluster name must all be known")
	}
	for _, text := range append([]string{s.Partition, s.Account, s.Region, s.Cluster, s.UID, s.Queue},
		append(s.NodeRoles, s.Parameters...)...) {
		if strings.ContainsAny(text, "\" \t\n") {
			return Scope{}, fmt.Errorf("make IAM policies: %q cannot be part of a name", text)
		}
	}
	if s.Partition == "" {
		s.Partition = PartitionOf(s.Region)
	}
	if s.UID == "" {
		s.UID = anyUID
	}
	if len(s.NodeRoles) == 0 {
		s.NodeRoles = []string{"KarpenterNodeRole-" + s.Cluster}
	}
	if s.Queue == "" {
		s.Queue = s.Cluster
	}
	return s, nil
}

// PartitionOf returns the AWS partition of a region, by the prefix of its name; "aws" for unknown prefixes.
func PartitionOf(region string) string {
	for _, p := range otherPartitions() {
		if strings.HasPrefix(region, p.prefix) {
			return p.name
		}
	}
	return "aws"
}

// Partitions returns the names of all partitions that PartitionOf knows.
func Partitions() []string {
	out := []string{"aws"}
	for _, p := range otherPartitions() {
		out = append(out, p.name)
	}
	return out
}

// partition is an AWS partition with the prefix of its regions.
type partition struct{ name, prefix string }

func otherPartitions() []partition {
	return []partition{
		{"aws-cn", "cn-"}, {"aws-us-gov", "us-gov-"}, {"aws-iso", "us-iso-"}, {"aws-iso-b", "us-isob-"}, {"aws-iso-f", "us-isof-"},
		{"aws-iso-e", "eu-isoe-"}, {"aws-eusc", "eusc-"},
	}
}

func (s Scope) arn(service, region, account, resource string) string {
	return "arn:" + s.Partition + ":" + service + ":" + region + ":" + account + ":" + resource
}

// ec2 returns ARN patterns of EC2 resources in the region, with any account: ARNs of images and snapshots have no
// account, and subnets and capacity reservations may be shared by another account.
func (s Scope) ec2(kinds ...string) []string {
	var out []string
	for _, kind := range kinds {
		out = append(out, s.arn("ec2", s.Region, "*", kind+"/*"))
	}
	return out
}
