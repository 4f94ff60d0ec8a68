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

// kinds applies the CRDs. Every starting controller applies missing CRDs, because no controller can run without them.
// Only the leader replaces older CRDs, before its loops start.
type kinds struct {
	bringer *kubeclient.Definitions
	log     *slog.Logger
	isDone  atomic.Bool // all CRDs are up to date, or no retry can help
}

// kindsPatience is the timeout of renew. It is well below the Lease duration of 15 seconds, because the leader calls
// renew before it starts its loops. kindsPause is the time between two later calls.
const (
	kindsPatience = 8 * time.Second
	kindsPause    = 30 * time.Second
)

// newKinds returns the kinds of the API server in cfg.
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
		k.isDone.Store(true) // no later try helps
		return nil
	}
	return err
}

// renew applies CRDs that are missing or older, unless isDone is set. It logs an error and does not return it, because
// the loops work with older CRDs, without their new fields.
func (k *kinds) renew(ctx context.Context) {
	if k.isDone.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, kindsPatience)
	defer cancel()
	if err := k.bring(ctx, kubeclient.Stale); err != nil {
		k.log.Warn("cannot update the definitions of the API yet", "error", err.Error(), "hint", kubeclient.Hint(err))
		return
	}
	k.isDone.Store(true)
}

// bring applies the CRDs that which selects, and logs the changed ones. If which is Stale, it also logs the CRDs that
// are newer, and those that it did not replace because the user must decide.
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

// Start calls renew until isDone is set or this controller is no longer the leader, because the call on acquiring the
// Lease may have failed.
func (k *kinds) Start(ctx context.Context) error {
	tick := time.NewTicker(kindsPause)
	defer tick.Stop()
	for k.renew(ctx); !k.isDone.Load(); k.renew(ctx) {
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
