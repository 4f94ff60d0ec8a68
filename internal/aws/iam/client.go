// Package iam reads and creates the instance profiles of nodes, and reads roles and the caller's identity.
//
// In: role names, our cluster's name and UID.
// Out: instance profiles, roles, the results of IAM's policy simulator, the caller's identity; errors classified by
// package awserr.
// Never: a change to a role or a policy.
package iam

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Cluster identifies our cluster in the names and tags of instance profiles.
type Cluster struct {
	Name   string // name of the EKS cluster
	UID    string // UID of the kube-system namespace; may be empty for calls that do not concern instance profiles
	Region string // empty: the region of New's cfg
}

// Client is the client of IAM and STS. It is safe for concurrent use.
type Client struct {
	cluster Cluster
	iam     *awsiam.Client
	sts     *sts.Client
}

// New returns a client with the endpoint, region and credentials of cfg.
func New(cfg aws.Config, cluster Cluster) *Client {
	if cluster.Region == "" {
		cluster.Region = cfg.Region
	}
	cfg = awserr.ClientConfig(cfg)
	return &Client{cluster: cluster, iam: awsiam.NewFromConfig(cfg), sts: sts.NewFromConfig(cfg)}
}

// Identity is the principal that AWS sees in our calls.
type Identity struct {
	Account string // account ID
	ARN     string // "arn:aws:sts::111122223333:assumed-role/joiner/i-0123"
}

// Role returns the name of the role if the principal is an assumed role; empty for a user.
func (i Identity) Role() string {
	_, rest, ok := strings.Cut(i.ARN, ":assumed-role/")
	if !ok {
		return ""
	}
	role, _, _ := strings.Cut(rest, "/")
	return role
}

// Identity returns the principal of our credentials, read from STS.
func (d *Client) Identity(ctx context.Context) (Identity, error) {
	out, err := d.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return Identity{}, awserr.Classify("GetCallerIdentity", err)
	}
	return Identity{Account: aws.ToString(out.Account), ARN: aws.ToString(out.Arn)}, nil
}
