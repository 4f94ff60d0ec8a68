package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// record is a lock without an API server.
type record struct {
	resourcelock.Interface
	held     *resourcelock.LeaderElectionRecord
	identity string
}

func (r record) Identity() string { return r.identity }
func (r record) Describe() string { return "kube-system/l" }

func (r record) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return r.held, nil, nil
}

func (r record) Create(_ context.Context, next resourcelock.LeaderElectionRecord) error {
	*r.held = next
	return nil
}

func (r record) Update(_ context.Context, next resourcelock.LeaderElectionRecord) error {
	*r.held = next
	return nil
}

// TestLeaseLogsItsHolder: a standby controller logs the holder of the Lease once.
func TestLeaseLogsItsHolder(t *testing.T) {
	t.Parallel()
	var (
		held resourcelock.LeaderElectionRecord
		out  bytes.Buffer
	)
	of := func(identity string) *lease {
		return &lease{log: slog.New(slog.NewTextHandler(&out, nil)).With("by", identity), Interface: record{held: &held, identity: identity}}
	}
	a, b := of("a"), of("b")
	hold := func(who *lease, holder string) error {
		return who.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder})
	}
	look := func(who *lease) error {
		_, _, err := who.Get(t.Context())
		return err
	}
	for i, c := range []struct {
		do   func() error
		want string // that is logged; empty for nothing
	}{
		{func() error { return a.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}) }, `it holds the lease" by=a`},
		{func() error { return hold(a, "a") }, ""},
		{func() error { return look(b) }, `standing by: another controller holds the lease" by=b lease=kube-system/l holder=a`},
		{func() error { return look(b) }, ""},
		{func() error { return hold(a, "") }, ""},
		{func() error { return look(b) }, ""},
		{func() error { return hold(b, "b") }, `this controller is active: it holds the lease" by=b`},
		{func() error { return look(a) }, `standing by: another controller holds the lease" by=a lease=kube-system/l holder=b`},
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

// TestLeaseIsTakenOnce: onTake is called each time the Lease is acquired, and not when it is renewed.
func TestLeaseIsTakenOnce(t *testing.T) {
	t.Parallel()
	var held resourcelock.LeaderElectionRecord
	taken := 0
	l := &lease{
		log: slog.New(slog.DiscardHandler), Interface: record{held: &held, identity: "a"},
		onTake: func(context.Context) { taken++ },
	}
	for i, c := range []struct {
		holder string
		want   int
	}{{"a", 1}, {"a", 1}, {"", 1}, {"a", 2}} {
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: c.holder}); err != nil || taken != c.want {
			t.Errorf("step %d: taken %d times (%v), want %d", i+1, taken, err, c.want)
		}
	}
}
