package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"testing"
)

// TestStoppedAtStart: the error of a signal during startup names the signal, and not a canceled context.
func TestStoppedAtStart(t *testing.T) {
	odd := errors.New("client rate limiter Wait returned an error: context canceled")
	for name, c := range map[string]struct {
		signal syscall.Signal
		during bool // during the call; false: during the pause after it
		want   string
	}{
		"during a call":     {syscall.SIGTERM, true, "stopped by SIGTERM while waiting to reach it"},
		"between two calls": {syscall.SIGTERM, false, "stopped by SIGTERM while waiting to reach it: broken"},
		"interrupt":         {syscall.SIGINT, true, "stopped by interrupt while waiting to reach it"},
		"outside a call":    {syscall.SIGTERM, true, "stopped by SIGTERM during start-up"},
	} {
		ctx, stop := untilSignal(t.Context())
		kill := func() {
			if err := syscall.Kill(os.Getpid(), c.signal); err != nil {
				t.Error(err)
			}
		}
		do := func(context.Context) error {
			if !c.during {
				return errors.New("broken")
			}
			kill()
			<-ctx.Done()
			return odd
		}
		// The error of the call is logged after the call and before the pause of one second.
		log := slog.New(slog.NewTextHandler(writes(func() {
			if !c.during {
				kill()
			}
		}), nil))
		got := insist(ctx, log, "reach it", func(error) verdict { return verdict{retry: true} }, do)
		if name == "outside a call" {
			got = odd
		}
		if got = stoppedOr(ctx, got); got == nil || got.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
		stop()
	}
	ctx, stop := untilSignal(t.Context())
	defer stop()
	if err := stoppedOr(ctx, odd); !errors.Is(err, odd) {
		t.Errorf("without a signal: %v", err)
	}
}

// writes is called for each line of a log.
type writes func()

func (w writes) Write(line []byte) (int, error) {
	w()
	return len(line), nil
}
