package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// crdInstaller applies the CRDs. Every starting controller applies missing CRDs, because no controller can run without
// them. Only the leader replaces older CRDs, before its loops start.
type crdInstaller struct {
	definitions *kubeclient.DefinitionInstaller
	log         *slog.Logger
	isDone      atomic.Bool // all CRDs are up to date, or no later attempt helps
}

const (
	// crdTimeout is the timeout of applyOutdated. It is well below the Lease duration of 15 seconds, because a new
	// leader does not renew the Lease until its first call of applyOutdated has returned.
	crdTimeout = 8 * time.Second
	// crdPause is the time between two calls of applyOutdated by Start.
	crdPause = 30 * time.Second
)

func newCRDInstaller(cfg *rest.Config, log *slog.Logger) (*crdInstaller, error) {
	definitions, err := kubeclient.NewDefinitions(cfg)
	if err != nil {
		return nil, err
	}
	return &crdInstaller{definitions: definitions, log: log}, nil
}

// applyMissing applies missing CRDs. Without permission it logs a warning and returns nil, because the CRDs may be
// managed by other tools.
func (c *crdInstaller) applyMissing(ctx context.Context) error {
	err := c.apply(ctx, kubeclient.SelectMissing)
	if kubeclient.Classify(err) == kubeclient.ReportToUser {
		c.log.Warn("cannot check the definitions of the API", "error", err.Error(), "hint", kubeclient.Hint(err)+", or set APPLY_CRDS=false")
		c.isDone.Store(true)
		return nil
	}
	return err
}

// applyOutdated applies CRDs that are missing or older than those of this release, unless isDone is set. It logs an
// error and does not return it, because the loops work with older CRDs, too, but without the new fields.
func (c *crdInstaller) applyOutdated(ctx context.Context) {
	if c.isDone.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, crdTimeout)
	defer cancel()
	if err := c.apply(ctx, kubeclient.SelectOutdated); err != nil {
		c.log.Warn("cannot update the definitions of the API yet", "error", err.Error(), "hint", kubeclient.Hint(err))
		return
	}
	c.isDone.Store(true)
}

// apply applies the CRDs of the selection, and logs the changed ones. With SelectOutdated, it also logs the CRDs that
// are newer than those of this release, and those that it did not replace because the user must decide.
func (c *crdInstaller) apply(ctx context.Context, selection kubeclient.Selection) error {
	results, err := c.definitions.Install(ctx, selection)
	if err != nil {
		return fmt.Errorf("apply the definitions of the API: %w", err)
	}
	for _, s := range results {
		switch {
		case s.NeedsUser() && selection == kubeclient.SelectOutdated:
			c.log.Warn("definition "+s.Summary(), "definition", s.Name)
		case s.Installed, s.State == kubeclient.DefinitionNewer && selection == kubeclient.SelectOutdated:
			c.log.Info("definition "+s.Summary(), "definition", s.Name)
		}
	}
	return nil
}

// Start calls applyOutdated until isDone is set or this controller is no longer the leader. The controller already
// called applyOutdated when it acquired the Lease, but that call may have failed.
func (c *crdInstaller) Start(ctx context.Context) error {
	tick := time.NewTicker(crdPause)
	defer tick.Stop()
	for c.applyOutdated(ctx); !c.isDone.Load(); c.applyOutdated(ctx) {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// NeedLeaderElection returns true: only the leader runs Start.
func (c *crdInstaller) NeedLeaderElection() bool { return true }
