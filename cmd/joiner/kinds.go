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

// kinds applies the CRDs. Every starting controller applies missing ones, because no controller can run without them.
// Only the leader replaces older ones, before its loops start.
type kinds struct {
	bringer *kubeclient.Definitions
	log     *slog.Logger
	current atomic.Bool // all CRDs are up to date, or no retry can help
}

// kindsPatience is the timeout for the CRDs before the leader starts its loops: well below the Lease duration of
// 15 seconds. kindsPause is the time between two later attempts.
const (
	kindsPatience = 8 * time.Second
	kindsPause    = 30 * time.Second
)

func newKinds(cfg *rest.Config, log *slog.Logger) (*kinds, error) {
	bringer, err := kubeclient.NewDefinitions(cfg)
	if err != nil {
		return nil, err
	}
	return &kinds{bringer: bringer, log: log}, nil
}

// complete applies missing CRDs. Without permission it logs a warning and returns nil, because the CRDs may be managed
// by other tools.
func (k *kinds) complete(ctx context.Context) error {
	err := k.bring(ctx, kubeclient.Lacking)
	if kubeclient.WhatNext(err) == kubeclient.Tell {
		k.log.Warn("cannot check the definitions of the API", "error", err.Error(), "hint", kubeclient.Hint(err)+", or set APPLY_CRDS=false")
		k.current.Store(true) // no later try helps
		return nil
	}
	return err
}

// renew applies CRDs that are missing or older. It returns no error, because the loops work with older CRDs, without
// their new fields.
func (k *kinds) renew(ctx context.Context) {
	if k.current.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, kindsPatience)
	defer cancel()
	if err := k.bring(ctx, kubeclient.Stale); err != nil {
		k.log.Warn("cannot update the definitions of the API yet", "error", err.Error(), "hint", kubeclient.Hint(err))
		return
	}
	k.current.Store(true)
}

func (k *kinds) bring(ctx context.Context, which kubeclient.Which) error {
	seen, err := k.bringer.Bring(ctx, which)
	if err != nil {
		return fmt.Errorf("apply the definitions of the API: %w", err)
	}
	for _, s := range seen {
		switch {
		case s.Held() && which == kubeclient.Stale:
			k.log.Warn("definition "+s.Says(), "definition", s.Name)
		case s.Brought, s.State == kubeclient.DefinitionNewer && which == kubeclient.Stale:
			k.log.Info("definition "+s.Says(), "definition", s.Name)
		}
	}
	return nil
}

// Start retries the CRDs that could not be applied when the Lease was acquired, while this controller is the leader.
func (k *kinds) Start(ctx context.Context) error {
	tick := time.NewTicker(kindsPause)
	defer tick.Stop()
	for k.renew(ctx); !k.current.Load(); k.renew(ctx) {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// NeedLeaderElection returns true: only the leader runs Start.
func (k *kinds) NeedLeaderElection() bool { return true }
