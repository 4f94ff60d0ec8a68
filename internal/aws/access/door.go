// Package access reads and creates what gives nodes access: instance profiles and roles in IAM, access entries and cluster facts in EKS.
//
// In: role names, our cluster's name and UID.
// Out: instance profiles, facts about the EKS cluster and its access entries, our own identity.
// Never: a change to a role, a policy or the cluster's authentication.
package access

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Cluster is who we are, as tags and names say it.
type Cluster struct {
	Name   string // of the EKS cluster
	UID    string // of its kube-system namespace
	Region string // "us-east-1"
}

// Door is the client of IAM, EKS and STS. It is safe for concurrent use.
type Door struct {
	cluster Cluster
	iam     *iam.Client
	eks     *eks.Client
	sts     *sts.Client
}

// New returns a client with the endpoint, region and credentials of cfg. The UID may be empty if the client is not used for
// instance profiles.
func New(cfg aws.Config, cluster Cluster) (*Door, error) {
	if cluster.Name == "" {
		return nil, errors.New("make a client for EKS: the cluster name is empty: set --cluster-name or CLUSTER_NAME")
	}
	if cluster.Region == "" {
		cluster.Region = cfg.Region
	}
	cfg = awserr.Genuine(cfg)
	return &Door{cluster: cluster, iam: iam.NewFromConfig(cfg), eks: eks.NewFromConfig(cfg), sts: sts.NewFromConfig(cfg)}, nil
}

// Identity is whom AWS takes us for.
type Identity struct {
	Account string // account ID
	ARN     string // "arn:aws:sts::111122223333:assumed-role/joiner/i-0123"
}

// Role returns the name of the role behind an assumed-role ARN, empty for a user.
func (i Identity) Role() string {
	_, rest, ok := strings.Cut(i.ARN, ":assumed-role/")
	if !ok {
		return ""
	}
	role, _, _ := strings.Cut(rest, "/")
	return role
}

// Identity asks STS who we are.
func (d *Door) Identity(ctx context.Context) (Identity, error) {
	out, err := d.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return Identity{}, awserr.Sort("GetCallerIdentity", err)
	}
	return Identity{Account: aws.ToString(out.Account), ARN: aws.ToString(out.Arn)}, nil
}
