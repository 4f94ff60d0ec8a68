// Package ec2 launches, lists and terminates EC2 instances.
//
// In: launch requests and instance ids; our cluster's name and UID.
// Out: instances, instance types, and errors classified by package awserr.
// Never: Kubernetes, a choice between offerings, or a change to a resource of another cluster.
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

// Cluster is who we are, as tags say it.
type Cluster struct {
	Name    string // of the EKS cluster
	UID     string // of its kube-system namespace: differs between two clusters with the same name
	Region  string // "us-east-1"
	Account string // 12 digits; may be empty, it is only shown
}

// Client is the client of EC2. It is safe for concurrent use.
type Client struct {
	cluster Cluster

	// Reads and writes have a client each: EC2 throttles them separately, and a
	// throttled burst of launches must not delay reads.
	reads  *awsec2.Client
	writes *awsec2.Client

	templates templates
	looks     *gather[Instance]
	ends      *gather[struct{}]
}

// attempts is how often a call is made before it fails; with waits of up to
// maxBackoff between them a throttled call lasts about two minutes.
const (
	attempts   = 10
	maxBackoff = 20 * time.Second

	// Calls that many claims make at once for one instance each are gathered
	// for window and made as one, of at most the number of IDs that EC2 recommends.
	window   = 50 * time.Millisecond
	gathered = 200
)

// New returns the client of a cluster, with the endpoint, region and credentials of cfg. So AWS_ENDPOINT_URL applies.
func New(cfg aws.Config, cluster Cluster) (*Client, error) {
	if cluster.Name == "" || cluster.UID == "" {
		return nil, errors.New("make a client for EC2: the cluster name or the UID of the namespace kube-system is empty")
	}
	if cluster.Region == "" {
		cluster.Region = cfg.Region
	}
	d := &Client{cluster: cluster, reads: client(cfg), writes: client(cfg)}
	d.templates.known = map[string]*knownTemplate{}
	d.looks = newGather(window, gathered, d.lookAll)
	d.ends = newGather(window, gathered, d.endAll)
	return d, nil
}

// client slows itself down when EC2 throttles it, for all of its callers together.
func client(cfg aws.Config) *awsec2.Client {
	return awsec2.NewFromConfig(awserr.Genuine(cfg), func(o *awsec2.Options) {
		o.Retryer = retry.NewAdaptiveMode(func(a *retry.AdaptiveModeOptions) {
			a.StandardOptions = append(a.StandardOptions, func(s *retry.StandardOptions) {
				s.MaxAttempts = attempts
				s.MaxBackoff = maxBackoff
				// The standard quota of retries is spent by one burst of 500
				// launches; the adaptive limit already bounds their rate.
				s.RateLimiter = ratelimit.None
			})
		})
	})
}

// Check reports whether EC2 answers and the credentials are valid. It makes one dry run.
func (d *Client) Check(ctx context.Context) error {
	_, err := d.reads.DescribeInstanceTypes(ctx, &awsec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
	err = awserr.Sort("reach EC2 in "+d.cluster.Region, err)
	if e := awserr.Of(err); e != nil && e.Code == "DryRunOperation" {
		return nil
	}
	return err
}

// String names the cluster for logs.
func (c Cluster) String() string {
	return fmt.Sprintf("%s (uid %s, %s)", c.Name, c.UID, c.Region)
}
