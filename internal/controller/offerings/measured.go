package offerings

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// MeasuredStore persists measurements.
type MeasuredStore interface {
	Read(ctx context.Context) (catalog.Measurements, error)
	Write(ctx context.Context, m catalog.Measurements, since catalog.Day) (catalog.Measurements, error)
}

// Measured holds the capacity that ready Nodes reported, by instance type and AMI. For a type and AMI that was measured
// before, plans use this capacity instead of the predicted one. At startup, measurements are loaded from the store and
// from the existing Nodes. Changes are saved a few seconds later. All methods are safe for concurrent use. The methods
// Note, Of and Load accept a nil receiver, which holds no measurements.
type Measured struct {
	Store MeasuredStore // keeps measured capacities across restarts
	Cache client.Reader // reads objects from the informers
	Batch *loop.Batch   // gets a request for a plan when a measurement has changed
	Log   *slog.Logger  // the log of this process

	failures loop.Backoff // back-off after failed calls of Pass
	work     sync.Mutex   // held during Pass
	isLoaded bool         // the store was read successfully

	mu      sync.Mutex
	known   catalog.Measurements // all measurements; nil: none
	Version int                  // increases with each change
	Saved   int                  // the version that is in the store
}

// Times of the loop that saves measurements.
const (
	MeasuredPause    = 10 * time.Second // between two calls of Pass
	measuredTimeout  = 30 * time.Second // timeout of the API calls of Pass
	MeasuredMaxPause = time.Hour        // longest pause after failures, for example while a permission is missing
	// measuredLife is how many days a measurement is kept after a Node last confirmed it.
	measuredLife = 60
)

// Note records the capacity of the claim's Node. The Node must be ready.
func (m *Measured) Note(claim *karpv1.NodeClaim, node *corev1.Node, now time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	isNews := m.note(claim, node, now)
	m.mu.Unlock()
	if isNews {
		m.Batch.Ask("measured")
	}
}

// note reports whether the measurements have changed. The caller must hold the lock.
func (m *Measured) note(claim *karpv1.NodeClaim, node *corev1.Node, now time.Time) bool {
	if m.known == nil {
		m.known = catalog.Measurements{}
	}
	isNews := m.known.Add(catalog.Report{
		Image: claim.Status.ImageID, Type: claim.Labels[corev1.LabelInstanceTypeStable], Day: catalog.DayOf(now),
		Expected: conversion.Amounts(claim.Status.Capacity), Reported: conversion.Amounts(node.Status.Capacity),
	})
	if isNews {
		m.Version++
	}
	return isNews
}

// Of returns the measured capacity of a type with an AMI; false if no Node of that type and AMI was measured.
func (m *Measured) Of(image, instanceType string) (catalog.Measured, bool) {
	if m == nil {
		return catalog.Measured{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	measured, ok := m.known[catalog.Sample{Image: image, Type: instanceType}]
	return measured, ok
}

// version returns the version of the measurements, which changes if and only if the measurements change. A nil receiver
// has version 0.
func (m *Measured) version() int {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Version
}

// Load reads the store and the Nodes, unless it has already done so. If the store cannot be read, the loop in Start
// retries.
func (m *Measured) Load(ctx context.Context, now time.Time) {
	if m != nil {
		m.Report(m.Pass(ctx, now), now)
	}
}

// Start saves changes to the store until ctx ends.
func (m *Measured) Start(ctx context.Context) error {
	pause := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		now := time.Now()
		pause = m.Report(m.Pass(ctx, now), now)
	}
}

// Report logs a new error once, and returns the time until the next pass.
func (m *Measured) Report(err error, now time.Time) time.Duration {
	next, hint := loop.ClassifyError(err)
	if err == nil || next == kubeclient.Reread { // Reread: another client wrote the store; the next pass merges
		m.failures.Clear("measured")
		return MeasuredPause
	}
	until, isNews := m.failures.FailFor(now, "measured", awserr.StableText(err), MeasuredPause, MeasuredMaxPause)
	if isNews {
		m.Log.Error("cannot store the measured capacity of nodes; until this works, a restart measures only the existing Nodes",
			"error", err.Error(), "hint", hint, "nextTry", until.Sub(now).String())
	}
	return until.Sub(now)
}

// Pass loads the store if it is not loaded yet, and saves unsaved changes.
func (m *Measured) Pass(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, measuredTimeout)
	defer cancel()
	m.work.Lock()
	defer m.work.Unlock()
	if !m.isLoaded {
		stored, err := m.Store.Read(ctx)
		m.mergeStored(stored)
		// The store is read before the Nodes. The predicted capacity of a Node may itself have been a measurement. Such
		// a Node can confirm a known measurement, but not restore a lost one: it reports what was predicted.
		m.replay(ctx, now)
		if stored == nil { // the store could not be read
			return err
		}
		if err != nil {
			m.Log.Warn("dropped stored capacity measurements that cannot be parsed", "error", err.Error())
		}
		m.isLoaded = true
	}
	m.mu.Lock()
	version, known := m.Version, m.known.Merge(nil) // a copy
	isSaved := version == m.Saved
	m.mu.Unlock()
	if isSaved {
		return nil
	}
	stored, err := m.Store.Write(ctx, known, catalog.DayOf(now)-measuredLife)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.Saved = version
	m.mu.Unlock()
	m.mergeStored(stored)
	return nil
}

// mergeStored adds what the store has to the known measurements. Another process may have stored some of it.
func (m *Measured) mergeStored(stored catalog.Measurements) {
	m.mu.Lock()
	merged := m.known.Merge(stored)
	isNews := !merged.Equal(m.known)
	if isNews {
		isSaved := m.Version == m.Saved
		m.known = merged
		m.Version++
		if isSaved {
			m.Saved = m.Version // the store has both parts
		}
	}
	m.mu.Unlock()
	if isNews {
		m.Batch.Ask("measured")
	}
}

// replay records the capacity of the Nodes that became ready before this process started. The previous process may not
// have saved this capacity.
func (m *Measured) replay(ctx context.Context, now time.Time) {
	var claims karpv1.NodeClaimList
	var nodes corev1.NodeList
	for _, list := range []client.ObjectList{&claims, &nodes} {
		if err := m.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			m.Log.Warn("cannot read the capacity of the existing Nodes", "error", fmt.Sprintf("list %T: %s", list, err))
			return
		}
	}
	byName := map[string]*corev1.Node{}
	for i := range nodes.Items {
		byName[nodes.Items[i].Name] = &nodes.Items[i]
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		node := byName[claim.Status.NodeName]
		if snapshot.IsNodeOf(claim, node) && nodestate.IsServed(claim.Spec.NodeClassRef) && node.Labels[karpv1.LabelInitialized] == "true" {
			m.Note(claim, node, now)
		}
	}
}
