package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
	"k8s.io/client-go/rest"

	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/aws/interruption"
	"github.com/joiner-sh/joiner/internal/aws/pricing"
	"github.com/joiner-sh/joiner/internal/aws/ratelimit"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/cli/connection"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// awsSide has the AWS clients, and the facts about the cluster from EKS and the settings. Its counterpart for
// Kubernetes is kubeSide.
type awsSide struct {
	identity ec2.Cluster           // name, UID and region of the cluster
	join     provisioner.JoinFacts // what nodes need to join the cluster
	vpcID    string                // ID of the cluster's VPC; empty if EKS did not return it
	// authority is the certificate authority for drift hashes, in base64; see hashedAuthority.
	authority string
	arn       string         // ARN of the cluster; empty if EKS did not return it
	proof     eks.Comparison // whether the EKS cluster is the cluster of the API server
	table     catalog.Table  // embedded table of instance types

	ec2     *ec2.Client
	eks     *eks.Client
	iam     *iam.Client
	network *vpc.Client
	images  *ami.Client
	prices  *pricing.Client
	queue   *interruption.Client // nil without an interruption queue
	shifts  *eks.ZonalShifts     // nil unless zonal shifts are enabled

	unlimited aws.Config // the AWS configuration without a rate limit
	// diagnosis has the clients that diagnose why nodes do not join. They have their own rate limit.
	diagnosis collector.Clients

	calls *callMetrics
}

// openAWS creates the AWS clients, checks that EKS and EC2 answer, and reads the facts about the cluster.
func openAWS(ctx context.Context, settings config.Settings, kube *kubeSide, log *slog.Logger) (*awsSide, error) {
	a := &awsSide{calls: &callMetrics{}}
	cfg, err := a.configure(ctx, settings, log)
	if err != nil {
		return nil, err
	}
	a.identity = ec2.Cluster{Name: settings.ClusterName, UID: kube.uid, Region: cfg.Region}
	if a.table, err = catalog.Embedded(); err != nil {
		return nil, err
	}
	if a.eks, err = eks.New(cfg, settings.ClusterName); err != nil {
		return nil, err
	}
	a.iam = iam.New(cfg, iam.Cluster{Name: settings.ClusterName, UID: kube.uid, Region: cfg.Region})
	if err := a.readFacts(ctx, settings, kube, log); err != nil {
		return nil, fmt.Errorf("%w%s", err, regionHint(cfg.Region, a.table.Regions()))
	}
	if a.ec2, err = ec2.New(cfg, a.identity); err != nil {
		return nil, err
	}
	if err := retry(ctx, log, "reach EC2 in "+cfg.Region, judgeAWS, a.ec2.Check); err != nil {
		return nil, err
	}
	a.network, a.images = vpc.New(cfg), ami.New(cfg)
	if settings.InterruptionQueue != "" {
		a.queue = interruption.New(cfg, settings.InterruptionQueue)
	}
	if settings.ZonalShift {
		if a.arn == "" {
			return nil, errors.New("follow zonal shifts: EKS does not return the cluster's ARN: allow eks:DescribeCluster, or leave out --enable-zonal-shift (ENABLE_ZONAL_SHIFT)")
		}
		a.shifts = eks.NewZonalShifts(cfg, a.arn)
	}
	if err := a.openDiagnosis(settings); err != nil {
		return nil, err
	}
	a.prices = pricing.New(pricing.Config{AWS: cfg, Table: a.table, Isolated: settings.IsolatedVPC})
	return a, nil
}

// configure loads the AWS configuration, with region and credentials. The result has the rate limit that all clients
// share; a.unlimited is the configuration without this limit.
func (a *awsSide) configure(ctx context.Context, settings config.Settings, log *slog.Logger) (aws.Config, error) {
	webIdentity := &webIdentityClient{}
	options := []func(*awsconfig.LoadOptions) error{awsconfig.WithLogger(sdkLogger(log)), webIdentity.option()}
	if settings.Region != "" {
		options = append(options, awsconfig.WithRegion(settings.Region))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return cfg, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if err := connection.EndpointProblem(cfg); err != nil {
		return cfg, err
	}
	timeoutCtx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if cfg.Region == "" {
		out, err := imds.NewFromConfig(cfg).GetRegion(timeoutCtx, &imds.GetRegionInput{})
		if err != nil {
			return cfg, errors.New("find the AWS region: it is not set, and there is no instance metadata service: set AWS_REGION")
		}
		cfg.Region = out.Region
	}
	webIdentity.setConfig(cfg)
	if _, err := cfg.Credentials.Retrieve(timeoutCtx); err != nil {
		return cfg, fmt.Errorf("find AWS credentials: %s%s", connection.CredentialsProblem(err), credentialsAdvice())
	}
	cfg.AppID = "joiner"
	a.unlimited = cfg
	limits := ratelimit.Limits{}
	for action, rate := range settings.EC2Limits {
		limits[action] = ratelimit.Rate(rate)
	}
	// All clients share one rate limit, because EC2's limits apply to the account.
	cfg.APIOptions = append(cfg.APIOptions, a.calls.addMiddleware,
		ratelimit.New(ratelimit.Published().With(limits), a.calls.recordAttempt).AddTo)
	return cfg, nil
}

func sdkLogger(log *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(_ logging.Classification, format string, v ...any) {
		log.Debug("AWS SDK", "says", fmt.Sprintf(format, v...))
	})
}

// readFacts reads the facts about the cluster from EKS, and checks that the EKS cluster is the cluster of the API
// server. A missing EKS cluster is always an error. If the settings have the endpoint, other errors are only logged.
func (a *awsSide) readFacts(ctx context.Context, settings config.Settings, kube *kubeSide, log *slog.Logger) error {
	var facts eks.Facts
	err := retry(ctx, log, "ask EKS about cluster "+settings.ClusterName, judgeAWS, func(ctx context.Context) error {
		var err error
		facts, err = a.eks.Facts(ctx)
		return err
	})
	switch {
	case awserr.Is(err, awserr.Gone):
		return fmt.Errorf("there is no EKS cluster %q in %s: correct --cluster-name (CLUSTER_NAME), or AWS_REGION, or use the credentials of its account",
			settings.ClusterName, a.identity.Region)
	case err != nil && settings.ClusterEndpoint == "":
		return err
	case err != nil:
		log.Warn("EKS does not describe the cluster: AL2023 nodes need its service CIDR, and it is not proven that the EKS cluster of this name is the cluster of the API server",
			"error", err.Error(), "hint", "allow eks:DescribeCluster")
	}
	ca := settings.ClusterCABundle
	if ca == "" {
		ca = facts.CA
	}
	if ca == "" {
		ca = base64.StdEncoding.EncodeToString(authority(kube.config))
	}
	endpoint := settings.ClusterEndpoint
	if endpoint == "" {
		endpoint = facts.Endpoint
	}
	if a.proof, err = a.proveIdentity(ctx, facts, kube, log); err != nil {
		return err
	}
	if err := checkJoinSettings(settings, facts); err != nil {
		return err
	}
	a.vpcID = facts.VPC
	a.arn = facts.ARN
	a.authority = hashedAuthority(settings, kube.config, ca)
	a.join = provisioner.JoinFacts{
		Name: settings.ClusterName, Endpoint: endpoint, CA: ca, ServiceCIDR: facts.ServiceCIDR, DNS: kube.dns, IPv6: facts.IPv6,
	}
	return nil
}

// hashedAuthority returns the certificate authority, in base64, for drift hashes: from the settings, else from the
// client configuration, else fallback. Karpenter does the same, so both compute the same hashes. User data prefers
// EKS's authority, where the encoding of the same certificates may differ.
func hashedAuthority(settings config.Settings, cfg *rest.Config, fallback string) string {
	if settings.ClusterCABundle != "" {
		return settings.ClusterCABundle
	}
	if data := authority(cfg); len(data) > 0 {
		return base64.StdEncoding.EncodeToString(data)
	}
	return fallback
}

// authority returns the certificate authority of a client configuration, as PEM; nil if it has none.
func authority(cfg *rest.Config) []byte {
	if len(cfg.CAData) > 0 {
		return cfg.CAData
	}
	data, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return nil
	}
	return data
}

// sameAuthority reports whether the certificate authority from EKS, in base64, and that of the client configuration
// have a certificate in common. It also returns true if one of the two has no readable certificate.
func sameAuthority(fromEKS string, cfg *rest.Config) bool {
	eksAuthority, err := base64.StdEncoding.DecodeString(fromEKS)
	same, known := eks.SameAuthority(eksAuthority, authority(cfg))
	return err != nil || same || !known
}
