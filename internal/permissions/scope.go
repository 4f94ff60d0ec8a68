// Package permissions lists what the controller may do: the IAM statements of its role (Policies) and the RBAC rules of its service account (Rules),
// each with the reason for it. The chart, Terraform and CloudFormation are written from these lists.
//
// In: the cluster's name, account and region; the roles of its nodes and its interruption queue.
// Out: IAM policies statement by statement, RBAC rules, and whether a rule allows a request.
// Never: a permission that no call of the controller needs, a change to resources without the cluster's tags, or a call to AWS or Kubernetes.
package permissions

import (
	"errors"
	"fmt"
	"strings"
)

// Scope is whom the policies are for.
type Scope struct {
	Partition string // "aws", "aws-cn", "aws-us-gov"; empty: that of the region
	Account   string // 12 digits
	Region    string
	Cluster   string // name of the EKS cluster

	// UID is that of the cluster's kube-system namespace. With it nothing of another cluster that has the same name, in the
	// same account and region, can be changed; without it only the controller itself keeps from that. A cluster has it when it
	// has been made: kubectl get namespace kube-system -o jsonpath={.metadata.uid}
	UID string

	// NodeRoles are the names, with their paths, of the roles that nodes may have; * stands for any characters.
	// Empty: KarpenterNodeRole-<cluster>, as the guide of Karpenter names it.
	NodeRoles []string
	// Queue is the name of the interruption queue. Empty: the cluster's name.
	Queue string
	// Parameters are the names of parameters of Systems Manager that EC2NodeClasses select images by, besides those of
	// AWS; * stands for any characters.
	Parameters []string
}

// anyUID stands for the UID where it is not known: the tag must be there, whatever it says.
const anyUID = "*"

// complete checks the scope and fills in what has a default.
func (s Scope) complete() (Scope, error) {
	if s.Account == "" || s.Region == "" || s.Cluster == "" {
		return Scope{}, errors.New("make IAM policies: account, region and cluster name must all be known")
	}
	for _, text := range append([]string{s.Partition, s.Account, s.Region, s.Cluster, s.UID, s.Queue}, append(s.NodeRoles, s.Parameters...)...) {
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

// PartitionOf returns the part of AWS that a region belongs to: "aws" unless its name begins as those of another one do.
func PartitionOf(region string) string {
	for _, p := range others() {
		if strings.HasPrefix(region, p.prefix) {
			return p.name
		}
	}
	return "aws"
}

// Partitions returns the names of all parts of AWS that PartitionOf knows.
func Partitions() []string {
	out := []string{"aws"}
	for _, p := range others() {
		out = append(out, p.name)
	}
	return out
}

// partition is a part of AWS, with the beginning of the names of its regions.
type partition struct{ name, prefix string }

// others are all partitions but "aws".
func others() []partition {
	return []partition{
		{"aws-cn", "cn-"}, {"aws-us-gov", "us-gov-"}, {"aws-iso", "us-iso-"}, {"aws-iso-b", "us-isob-"}, {"aws-iso-f", "us-isof-"},
		{"aws-iso-e", "eu-isoe-"}, {"aws-eusc", "eusc-"},
	}
}

// arn writes an ARN of the scope's partition.
func (s Scope) arn(service, region, account, resource string) string {
	return "arn:" + s.Partition + ":" + service + ":" + region + ":" + account + ":" + resource
}

// ec2 writes ARNs of EC2: kinds of resource in the region, of whatever account. Images and snapshots have none in their
// ARN, and subnets and reservations may be shared by another one.
func (s Scope) ec2(kinds ...string) []string {
	var out []string
	for _, kind := range kinds {
		out = append(out, s.arn("ec2", s.Region, "*", kind+"/*"))
	}
	return out
}
