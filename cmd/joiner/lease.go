package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/joiner-sh/joiner/internal/config"
)

// lease is the Lease of leader election. It logs the holder, so that a standby controller does not look idle.
type lease struct {
	resourcelock.Interface
	log    *slog.Logger
	holder string // identity in the last Lease that was read or written; empty: none

	// onAcquire is called when this controller has acquired the Lease, before its loops start; may be nil.
	onAcquire func(context.Context)
}

// leaseTimeout is the timeout of one call to the API server about the Lease: half of the renew deadline of 10 seconds.
const leaseTimeout = 5 * time.Second

// newLease returns the lease with the name and namespace of the settings. The identity of this controller is the host's
// name with a random suffix.
func newLease(cfg *rest.Config, settings config.Settings, log *slog.Logger) (*lease, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent += " leader-election"
	cfg.Timeout = leaseTimeout
	leases, err := coordinationv1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up leader election: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("set up leader election: %w", err)
	}
	return &lease{log: log, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: leaseNamespace(settings), Name: settings.LeaderElectionName},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

// leaseNamespace returns the namespace of the Lease: that of the settings, the pod's namespace, or kube-system outside
// of a pod.
func leaseNamespace(settings config.Settings) string {
	if settings.LeaderElectionNamespace != "" {
		return settings.LeaderElectionNamespace
	}
	if namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return strings.TrimSpace(string(namespace))
	}
	return metav1.NamespaceSystem
}

// recordTo makes l write an event when this controller acquires or loses the Lease.
func (l *lease) recordTo(recorder events.EventRecorder) {
	if lock, ok := l.Interface.(*resourcelock.LeaseLock); ok {
		lock.LockConfig.EventRecorder = leaseRecorder{recorder}
	}
}

// Get reads the Lease and logs a new holder.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.setHolder(record.HolderIdentity)
	}
	return record, raw, err
}

// Create creates the Lease with the holder of record.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.handleWrite(ctx, record, l.Interface.Create(ctx, record))
}

// Update acquires, renews or releases the Lease.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.handleWrite(ctx, record, l.Interface.Update(ctx, record))
}

// handleWrite handles the result of writing record: it logs a new holder, and calls onAcquire if this controller is the
// new holder. err is the error of the write; handleWrite returns it.
func (l *lease) handleWrite(ctx context.Context, record resourcelock.LeaderElectionRecord, err error) error {
	if err != nil {
		return err
	}
	isAcquired := record.HolderIdentity == l.Identity() && l.holder != record.HolderIdentity
	l.setHolder(record.HolderIdentity)
	if isAcquired && l.onAcquire != nil {
		l.onAcquire(ctx)
	}
	return nil
}

// setHolder stores the holder, and logs it if it differs from the stored one.
func (l *lease) setHolder(holder string) {
	if holder == l.holder {
		return
	}
	l.holder = holder
	switch holder {
	case "": // the Lease was released, and another replica will acquire it
	case l.Identity():
		l.log.Info("this controller is active: it holds the lease", "lease", l.Describe())
	default:
		l.log.Info("standing by: another controller holds the lease", "lease", l.Describe(), "holder", holder)
	}
}

// leaseRecorder adapts a recorder of events.k8s.io/v1 to the interface that package resourcelock needs.
type leaseRecorder struct{ events.EventRecorder }

// Eventf records an event about the Lease.
func (r leaseRecorder) Eventf(lease runtime.Object, kind, reason, message string, args ...any) {
	r.EventRecorder.Eventf(lease, nil, kind, reason, reason, message, args...)
}
