package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// signalContext returns a context that the first SIGINT or SIGTERM cancels, with a signalError as its cause. The
// returned function ends the signal handling. A second signal terminates the process at once.
func signalContext(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	received := make(chan os.Signal, 1)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-received:
			signal.Stop(received)
			cancel(signalError{signal: s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(received)
		cancel(nil)
	}
}

// signalError is the cause of a context that a signal canceled.
type signalError struct{ signal os.Signal }

// Error names the signal.
func (e signalError) Error() string {
	if e.signal == syscall.SIGTERM {
		return "stopped by SIGTERM"
	}
	return "stopped by " + e.signal.String()
}

// withSignalName returns err, the error of a function that ran with ctx, unless a signal canceled ctx. Then err may say
// only that the context was canceled, so withSignalName returns an error that names the signal. It returns nil if err
// is nil.
func withSignalName(ctx context.Context, err error) error {
	var bySignal signalError
	if err == nil || errors.As(err, &bySignal) || !errors.As(context.Cause(ctx), &bySignal) {
		return err
	}
	return fmt.Errorf("%w during start-up", bySignal)
}
