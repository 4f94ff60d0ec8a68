package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// HandlesSignals is the annotation of a command that handles signals itself, because it must shut down gracefully.
const HandlesSignals = "own-signals"

// Interrupted is the error of a command that a signal stopped.
type Interrupted struct{ By os.Signal }

// Error names the signal.
func (i Interrupted) Error() string {
	if i.By == syscall.SIGTERM {
		return "stopped by SIGTERM"
	}
	return "stopped by SIGINT"
}

// exitCode returns 128 plus the signal's number, as shells do.
func (i Interrupted) exitCode() int {
	if number, ok := i.By.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return ExitFailed
}

// execute runs the command until it is done or a signal arrives. After a signal it returns Interrupted without waiting
// for the command, because some commands, such as a plan, cannot be interrupted: the caller must exit the process.
func execute(ctx context.Context, root *cobra.Command, args []string) error {
	if cmd, _, err := root.Find(args); err == nil && cmd.Annotations[HandlesSignals] != "" {
		return root.ExecuteContext(ctx)
	}
	received := make(chan os.Signal, 1)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(received)
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	select {
	case err := <-done:
		return err
	case s := <-received:
		return Interrupted{By: s}
	}
}
