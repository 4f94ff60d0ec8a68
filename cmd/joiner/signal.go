package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that is canceled by the first SIGINT or SIGTERM, which is its cause. A second signal
// stops the process at once.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	came := make(chan os.Signal, 1)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-came:
			signal.Stop(came)
			cancel(stopped{by: s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(came)
		cancel(nil)
	}
}

// stopped is the cause of a context that a signal canceled.
type stopped struct{ by os.Signal }

func (s stopped) Error() string {
	if s.by == syscall.SIGTERM {
		return "stopped by SIGTERM"
	}
	return "stopped by " + s.by.String()
}

// stoppedOr returns err, or an error that names the signal if a signal canceled the context: err would only say that
// the context was canceled.
func stoppedOr(ctx context.Context, err error) error {
	var signal stopped
	if err == nil || errors.As(err, &signal) || !errors.As(context.Cause(ctx), &signal) {
		return err
	}
	return fmt.Errorf("%w during start-up", signal)
}
