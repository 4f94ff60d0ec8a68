// Package eks reads the EKS cluster.
//
// In: the cluster's name; for zonal shifts, its ARN.
// Out: facts about the cluster, its access entries, node groups and Fargate profiles, the zonal shifts in force; errors
// classified by package awserr.
// Never: a change to the cluster, to its authentication or to a zonal shift; a call to Kubernetes.
package eks

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Client is the client of EKS for one cluster. It is safe for concurrent use.
type Client struct {
	cluster string // name of the cluster
	eks     *awseks.Client
}

// New returns a client for the cluster of that name, with the endpoint, region and credentials of cfg.
func New(cfg aws.Config, cluster string) (*Client, error) {
	if cluster == "" {
		return nil, errors.New("make a client for EKS: the cluster name is empty: set --cluster-name or CLUSTER_NAME")
	}
	return &Client{cluster: cluster, eks: awseks.NewFromConfig(awserr.ClientConfig(cfg))}, nil
}
