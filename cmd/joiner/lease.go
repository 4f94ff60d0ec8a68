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

// lease is the lock that one of several controllers holds. It logs who does: one that stands by would be silent
// otherwise, and look as if it had nothing to do.
type lease struct {
	resourcelock.Interface
	log    *slog.Logger
	holder string // the last that was seen

	// onTake is called when this controller has taken the lease, before it acts; nil: nothing is.
	onTake func(context.Context)
}

// leaseTimeout is how long one call about the lease may take: half of the 10 seconds after which a holder that could
// not renew it gives up.
const leaseTimeout = 5 * time.Second

// newLease returns the lock that the settings name.
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

// leaseNamespace is where the lease is: in the pod's own namespace, or in kube-system outside of one.
func leaseNamespace(settings config.Settings) string {
	if settings.LeaderElectionNamespace != "" {
		return settings.LeaderElectionNamespace
	}
	if own, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return strings.TrimSpace(string(own))
	}
	return metav1.NamespaceSystem
}

// tell writes an event, too, when the lease changes hands.
func (l *lease) tell(recorder events.EventRecorder) {
	if lock, ok := l.Interface.(*resourcelock.LeaseLock); ok {
		lock.LockConfig.EventRecorder = changes{recorder}
	}
}

// Get reads who holds the lease.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.saw(record.HolderIdentity)
	}
	return record, raw, err
}

// Create makes the lease, held by the one that record names.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.wrote(ctx, record, l.Interface.Create(ctx, record))
}

// Update takes the lease, keeps it or lets it go.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.wrote(ctx, record, l.Interface.Update(ctx, record))
}

func (l *lease) wrote(ctx context.Context, record resourcelock.LeaderElectionRecord, err error) error {
	if err != nil {
		return err
	}
	taken := record.HolderIdentity == l.Identity() && l.holder != record.HolderIdentity
	l.saw(record.HolderIdentity)
	if taken && l.onTake != nil {
		l.onTake(ctx)
	}
	return nil
}

func (l *lease) saw(holder string) {
	if holder == l.holder {
		return
	}
	l.holder = holder
	switch holder {
	case "": // it was let go, and somebody will take it
	case l.Identity():
		l.log.Info("this controller acts: it holds the lease", "lease", l.Describe())
	default:
		l.log.Info("standing by: another controller holds the lease", "lease", l.Describe(), "holder", holder)
	}
}

// changes are the events of a lease, in the API that events have today.
type changes struct{ events.EventRecorder }

// Eventf records an event about the lease.
func (c changes) Eventf(lease runtime.Object, kind, reason, message string, args ...any) {
	c.EventRecorder.Eventf(lease, nil, kind, reason, reason, message, args...)
}
