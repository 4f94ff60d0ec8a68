package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"testing"
)

// TestSignalDuringStart: if a signal stops the startup, the error names the signal and not a canceled context.
func TestSignalDuringStart(t *testing.T) {
	canceled := errors.New("client rate limiter Wait returned an error: context canceled")
	for name, c := range map[string]struct {
		signal syscall.Signal
		isInDo bool // the signal arrives while retry calls do; false: in the pause after the call
		want   string
	}{
		"during a call":     {syscall.SIGTERM, true, "stopped by SIGTERM while waiting to reach it"},
		"between two calls": {syscall.SIGTERM, false, "stopped by SIGTERM while waiting to reach it: broken"},
		"interrupt":         {syscall.SIGINT, true, "stopped by interrupt while waiting to reach it"},
		"outside retry":     {syscall.SIGTERM, true, "stopped by SIGTERM during start-up"},
	} {
		ctx, stop := signalContext(t.Context())
		kill := func() {
			if err := syscall.Kill(os.Getpid(), c.signal); err != nil {
				t.Error(err)
			}
		}
		do := func(context.Context) error {
			if !c.isInDo {
				return errors.New("broken")
			}
			kill()
			<-ctx.Done()
			return canceled
		}
		// retry logs the error of do before it pauses for one second.
		log := slog.New(slog.NewTextHandler(onWrite(func() {
			if !c.isInDo {
				kill()
			}
		}), nil))
		got := retry(ctx, log, "reach it", func(error) verdict { return verdict{retry: true} }, do)
		if name == "outside retry" { // its error does not name an operation
			got = canceled
		}
		if got = withSignalName(ctx, got); got == nil || got.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
		stop()
	}
	ctx, stop := signalContext(t.Context())
	defer stop()
	if err := withSignalName(ctx, canceled); !errors.Is(err, canceled) {
		t.Errorf("without a signal: %v, want the error unchanged", err)
	}
}

// onWrite is an io.Writer that calls the function at each write.
type onWrite func()

func (w onWrite) Write(line []byte) (int, error) {
	w()
	return len(line), nil
}
