package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that the first SIGINT or SIGTERM cancels, with a stopped as its cause, and a function
// that ends the signal handling. A second signal terminates the process at once.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	received := make(chan os.Signal, 1)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-received:
			signal.Stop(received)
			cancel(stopped{by: s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(received)
		cancel(nil)
	}
}

// stopped is the cause of a context that a signal canceled.
type stopped struct{ by os.Signal }

// Error names the signal.
func (s stopped) Error() string {
	if s.by == syscall.SIGTERM {
		return "stopped by SIGTERM"
	}
	return "stopped by " + s.by.String()
}

// stoppedOr returns err, the error of a function that ran with ctx. If a signal canceled ctx, err may say only that the
// context was canceled, so stoppedOr returns an error that names the signal instead. If err is nil, it returns nil.
func stoppedOr(ctx context.Context, err error) error {
	var bySignal stopped
	if err == nil || errors.As(err, &bySignal) || !errors.As(context.Cause(ctx), &bySignal) {
		return err
	}
	return fmt.Errorf("%w during start-up", bySignal)
}
