package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type fakeLock struct {
	resourcelock.Interface
	record   *resourcelock.LeaderElectionRecord
	identity string
}

func (l fakeLock) Identity() string { return l.identity }
func (l fakeLock) Describe() string { return "kube-system/l" }

func (l fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return l.record, nil, nil
}

func (l fakeLock) Create(_ context.Context, next resourcelock.LeaderElectionRecord) error {
	*l.record = next
	return nil
}

func (l fakeLock) Update(_ context.Context, next resourcelock.LeaderElectionRecord) error {
	*l.record = next
	return nil
}

// TestLeaseLogsHolder: a controller logs a new holder of the Lease once. Controller a acquires, renews and releases the
// Lease, then b acquires it.
func TestLeaseLogsHolder(t *testing.T) {
	t.Parallel()
	var (
		record resourcelock.LeaderElectionRecord
		out    bytes.Buffer
	)
	leaseOf := func(identity string) *lease {
		return &lease{
			log:       slog.New(slog.NewTextHandler(&out, nil)).With("by", identity),
			Interface: fakeLock{record: &record, identity: identity},
		}
	}
	a, b := leaseOf("a"), leaseOf("b")
	write := func(l *lease, holder string) error {
		return l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder})
	}
	read := func(l *lease) error {
		_, _, err := l.Get(t.Context())
		return err
	}
	for i, c := range []struct {
		do   func() error
		want string // part of the log; empty: nothing is logged
	}{
		{func() error { return a.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}) }, `it holds the lease" by=a`},
		{func() error { return write(a, "a") }, ""},
		{func() error { return read(b) }, `standing by: another controller holds the lease" by=b lease=kube-system/l holder=a`},
		{func() error { return read(b) }, ""},
		{func() error { return write(a, "") }, ""},
		{func() error { return read(b) }, ""},
		{func() error { return write(b, "b") }, `this controller is active: it holds the lease" by=b`},
		{func() error { return read(a) }, `standing by: another controller holds the lease" by=a lease=kube-system/l holder=b`},
	} {
		out.Reset()
		if err := c.do(); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
		if got := out.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("step %d: logged %q, want %q", i+1, got, c.want)
		}
	}
}

// TestOnAcquire: onAcquire is called each time the Lease is acquired, and not when it is renewed.
func TestOnAcquire(t *testing.T) {
	t.Parallel()
	var record resourcelock.LeaderElectionRecord
	acquired := 0
	l := &lease{
		log: slog.New(slog.DiscardHandler), Interface: fakeLock{record: &record, identity: "a"},
		onAcquire: func(context.Context) { acquired++ },
	}
	for i, c := range []struct {
		holder string
		want   int
	}{{"a", 1}, {"a", 1}, {"", 1}, {"a", 2}} {
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: c.holder}); err != nil || acquired != c.want {
			t.Errorf("step %d: onAcquire was called %d times (%v), want %d", i+1, acquired, err, c.want)
		}
	}
}
