package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends with the first signal to stop, which is its cause. A second signal does not wait.
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

// stopped is the cause of a context that a signal has ended.
type stopped struct{ by os.Signal }

func (s stopped) Error() string {
	if s.by == syscall.SIGTERM {
		return "stopped by SIGTERM"
	}
	return "stopped by " + s.by.String()
}

// stoppedOr returns err, or that a signal came where that is the cause of it: what was under way says no more than
// that its context has ended.
func stoppedOr(ctx context.Context, err error) error {
	var signal stopped
	if err == nil || errors.As(err, &signal) || !errors.As(context.Cause(ctx), &signal) {
		return err
	}
	return fmt.Errorf("%w during start-up", signal)
}
