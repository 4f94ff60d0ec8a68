package main

import (
	"errors"
	"slices"

	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/aws/ratelimit"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/controller"
	"github.com/joiner-sh/joiner/internal/controller/diagnoser"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
)

// openDiagnosis creates the AWS clients that diagnose why nodes do not join. They have the credentials of the other
// clients, but their own rate limit, so that launches never wait for a diagnosis.
func (a *awsSide) openDiagnosis(settings config.Settings) error {
	cfg := a.unlimited.Copy()
	cfg.APIOptions = append(slices.Clone(cfg.APIOptions), a.calls.addMiddleware, ratelimit.NewShared(ratelimit.DiagnosisRate(), nil).AddTo)
	cfg.RetryMaxAttempts = 3
	eksClient, eksErr := eks.New(cfg, a.identity.Name)
	ec2Client, ec2Err := ec2.New(cfg, a.identity)
	if err := errors.Join(eksErr, ec2Err); err != nil {
		return err
	}
	a.diagnosis = collector.Clients{EKS: eksClient, EC2: ec2Client,
		IAM:    iam.New(cfg, iam.Cluster{Name: a.identity.Name, UID: a.identity.UID, Region: cfg.Region}),
		Images: ami.New(cfg), Network: vpc.New(cfg), NoIAM: settings.IsolatedVPC,
		Cluster: a.identity.Name, Region: cfg.Region, ItemTimeout: diagnoser.QueryTimeout}
	return nil
}

func (d dependencies) newDiagnoser(l controller.Controllers) *diagnoser.Diagnoser {
	clients := d.aws.diagnosis
	clients.Kube = evidence.NewCacheReader(d.manager.GetClient(), d.manager.GetAPIReader())
	return &diagnoser.Diagnoser{
		Clients:       clients,
		Cache:         d.manager.GetClient(),
		Cluster:       l.Claims.Cluster,
		LaunchBackoff: l.Claims.LaunchBackoff,
		Batch:         l.Claims.Batch,
		After:         d.settings.LateAfter,
		Events:        l.Claims.Events,
		LimitedEvents: l.Provisioner.Events,
		Metrics:       d.metrics,
		Log:           d.log,
	}
}
