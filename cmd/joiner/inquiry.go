package main

import (
	"errors"
	"slices"

	"github.com/joiner-sh/joiner/internal/aws/access"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/ratelimit"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/config"
	"github.com/joiner-sh/joiner/internal/controller"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/kube"
)

// openInquiry opens the doors by which it is looked into why nodes do not join. They lead to the same AWS with the same credentials;
// their calls have a budget of their own, so that however much there is to look into, launches do not wait for it.
func (a *away) openInquiry(settings config.Settings) error {
	cfg := a.plain.Copy()
	cfg.APIOptions = append(slices.Clone(cfg.APIOptions), a.calls.watch, ratelimit.NewOne(ratelimit.Diagnosis(), nil).Keep)
	cfg.RetryMaxAttempts = 3
	who, err := access.New(cfg, access.Cluster{Name: a.identity.Name, UID: a.identity.UID, Region: cfg.Region})
	what, err2 := ec2.New(cfg, a.identity)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	a.inquiry = collector.Doors{Access: who, EC2: what, Images: ami.New(cfg), Network: vpc.New(cfg), NoIAM: settings.IsolatedVPC,
		Cluster: a.identity.Name, Region: cfg.Region, Patience: controller.DiagnosisPatience}
	return nil
}

// diagnoses are who looks into why nodes do not join.
func (p parts) diagnoses(l controller.Loops) *controller.Diagnoses {
	doors := p.away.inquiry
	doors.Kube = kube.NewInsider(p.manager.GetClient(), p.manager.GetAPIReader())
	return &controller.Diagnoses{
		Doors: doors, Cache: p.manager.GetClient(), Cluster: l.Claims.Cluster, Holds: l.Claims.Holds, Batch: l.Claims.Batch, After: p.settings.LateAfter,
		Tell: l.Claims.Tell, Drip: l.Provisioner.Tell, Metrics: p.metrics, Log: p.log,
	}
}
