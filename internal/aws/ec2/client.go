// Package ec2 launches, lists and terminates EC2 instances.
//
// In: launch requests and instance IDs; our cluster's name and UID.
// Out: instances, instance types, and errors classified by package awserr.
// Never: a Kubernetes object, a choice between offerings, or a change to a resource of another cluster.
package ec2

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// Cluster identifies our cluster in tags.
type Cluster struct {
	Name    string // name of the EKS cluster
	UID     string // UID of the kube-system namespace; differs between two clusters with the same name
	Region  string // "us-east-1"
	Account string // 12 digits; may be empty, used only in messages
}

// Client is the client of EC2. It is safe for concurrent use.
type Client struct {
	cluster Cluster

	// Reads and writes have separate clients. EC2 throttles them separately, and a throttled burst of launches must not
	// delay reads.
	reads  *awsec2.Client
	writes *awsec2.Client

	templates    templates
	describes    *merger[Instance] // merges calls of Instance
	terminations *merger[struct{}] // merges calls of Terminate
}

// Limits of calls.
const (
	// maxAttempts is the number of attempts after which a call fails. With waits of up to maxBackoff between attempts,
	// a throttled call fails after about two minutes.
	maxAttempts = 10
	maxBackoff  = 20 * time.Second

	// mergeWindow is how long a request for one instance waits for requests for other instances, to merge them into one
	// call of EC2. maxMergedIDs is the maximum number of IDs in that call, from EC2's recommendation.
	mergeWindow  = 50 * time.Millisecond
	maxMergedIDs = 200
)

// New returns the client of a cluster, with the endpoint, region and credentials of cfg.
func New(cfg aws.Config, cluster Cluster) (*Client, error) {
	if cluster.Name == "" || cluster.UID == "" {
		return nil, errors.New("make a client for EC2: the cluster name or the UID of the namespace kube-system is empty")
	}
	if cluster.Region == "" {
		cluster.Region = cfg.Region
	}
	d := &Client{cluster: cluster, reads: sdkClient(cfg), writes: sdkClient(cfg)}
	d.templates.known = map[string]*knownTemplate{}
	d.describes = newMerger(mergeWindow, maxMergedIDs, d.describeAll)
	d.terminations = newMerger(mergeWindow, maxMergedIDs, d.terminateAll)
	return d, nil
}

// sdkClient returns an SDK client that lowers its rate of calls when EC2 throttles them. All callers of the client
// share this rate.
func sdkClient(cfg aws.Config) *awsec2.Client {
	return awsec2.NewFromConfig(awserr.ClientConfig(cfg), func(o *awsec2.Options) {
		o.Retryer = retry.NewAdaptiveMode(func(a *retry.AdaptiveModeOptions) {
			a.StandardOptions = append(a.StandardOptions, func(s *retry.StandardOptions) {
				s.MaxAttempts = maxAttempts
				s.MaxBackoff = maxBackoff
				// A burst of 500 launches uses up the SDK's standard retry quota. The adaptive mode already limits the
				// rate of retries.
				s.RateLimiter = ratelimit.None
			})
		})
	})
}

// Check makes a dry run of DescribeInstanceTypes. It returns an error if EC2 does not answer or denies the call.
func (d *Client) Check(ctx context.Context) error {
	_, err := d.reads.DescribeInstanceTypes(ctx, &awsec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
	err = awserr.Classify("reach EC2 in "+d.cluster.Region, err)
	if e := awserr.Of(err); e != nil && e.Code == "DryRunOperation" {
		return nil
	}
	return err
}

// String names the cluster for logs.
func (c Cluster) String() string {
	return fmt.Sprintf("%s (uid %s, %s)", c.Name, c.UID, c.Region)
}
