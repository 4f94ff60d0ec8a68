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

// openInquiry creates the AWS clients that diagnose why nodes do not join. They have the credentials of the other
// clients, but a rate limit of their own, so that launches never wait for a diagnosis.
func (a *away) openInquiry(settings config.Settings) error {
	cfg := a.plain.Copy()
	cfg.APIOptions = append(slices.Clone(cfg.APIOptions), a.calls.watch, ratelimit.NewOne(ratelimit.Diagnosis(), nil).Keep)
	cfg.RetryMaxAttempts = 3
	eksClient, err := eks.New(cfg, a.identity.Name)
	ec2Client, err2 := ec2.New(cfg, a.identity)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	a.inquiry = collector.Clients{EKS: eksClient, EC2: ec2Client,
		IAM:    iam.New(cfg, iam.Cluster{Name: a.identity.Name, UID: a.identity.UID, Region: cfg.Region}),
		Images: ami.New(cfg), Network: vpc.New(cfg), NoIAM: settings.IsolatedVPC,
		Cluster: a.identity.Name, Region: cfg.Region, Patience: diagnoser.DiagnosisPatience}
	return nil
}

// diagnoses creates the loop that diagnoses why nodes do not join.
func (p parts) diagnoses(l controller.Controllers) *diagnoser.Diagnoser {
	clients := p.away.inquiry
	clients.Kube = evidence.NewInsider(p.manager.GetClient(), p.manager.GetAPIReader())
	return &diagnoser.Diagnoser{
		Clients: clients,
		Cache:   p.manager.GetClient(),
		Cluster: l.Claims.Cluster,
		Holds:   l.Claims.Holds,
		Batch:   l.Claims.Batch,
		After:   p.settings.LateAfter,
		Events:  l.Claims.Events,
		Drip:    l.Provisioner.Events,
		Metrics: p.metrics,
		Log:     p.log,
	}
}
