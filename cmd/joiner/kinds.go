package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/joiner-sh/joiner/internal/kube"
)

// kinds sees to it that the cluster has the definitions of the API. What is missing, whoever starts first brings:
// without it nobody could act. What is older is for the one who acts to replace, before its loops begin.
type kinds struct {
	bringer *kube.Definitions
	log     *slog.Logger
	current atomic.Bool // nothing is left to bring
}

// kindsPatience is how long the holder of the lease takes for the definitions before its loops begin: well within the
// 15 seconds after which another takes the lease. kindsPause is the time between two later tries.
const (
	kindsPatience = 8 * time.Second
	kindsPause    = 30 * time.Second
)

func newKinds(cfg *rest.Config, log *slog.Logger) (*kinds, error) {
	bringer, err := kube.NewDefinitions(cfg)
	if err != nil {
		return nil, err
	}
	return &kinds{bringer: bringer, log: log}, nil
}

// complete brings what is missing. Who may not do so says it and goes on: somebody else may have brought it.
func (k *kinds) complete(ctx context.Context) error {
	err := k.bring(ctx, kube.Lacking)
	if kube.WhatNext(err) == kube.Tell {
		k.log.Warn("cannot look after the definitions of the API", "error", err.Error(), "hint", kube.Hint(err)+", or set APPLY_CRDS=false")
		k.current.Store(true) // no later try helps
		return nil
	}
	return err
}

// renew brings what is missing or older. It cannot fail: the loops work with older definitions, but for what is new in them.
func (k *kinds) renew(ctx context.Context) {
	if k.current.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, kindsPatience)
	defer cancel()
	if err := k.bring(ctx, kube.Stale); err != nil {
		k.log.Warn("cannot bring the definitions of the API up to date yet", "error", err.Error(), "hint", kube.Hint(err))
		return
	}
	k.current.Store(true)
}

func (k *kinds) bring(ctx context.Context, which kube.Which) error {
	seen, err := k.bringer.Bring(ctx, which)
	if err != nil {
		return fmt.Errorf("bring the definitions of the API: %w", err)
	}
	for _, s := range seen {
		switch {
		case s.Held() && which == kube.Stale:
			k.log.Warn("definition "+s.Says(), "definition", s.Name)
		case s.Brought, s.State == kube.DefinitionNewer && which == kube.Stale:
			k.log.Info("definition "+s.Says(), "definition", s.Name)
		}
	}
	return nil
}

// Start tries again what did not work when the lease was taken, while this controller acts.
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

// NeedLeaderElection tells the manager that only the one who acts does so.
func (k *kinds) NeedLeaderElection() bool { return true }
