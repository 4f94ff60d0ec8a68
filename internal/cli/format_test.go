package cli_test

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/internal/cli"
)

// TestEveryCommandTakesFormats: all commands that print results have the flag -o.
func TestEveryCommandTakesFormats(t *testing.T) {
	t.Parallel()
	root := cli.Root("test", cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			return // shell scripts and help texts
		}
		if !cmd.HasSubCommands() && cmd.Flags().Lookup("output") == nil {
			t.Errorf("%s has no flag -o", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
}

// TestSignalsStopCommands: a signal ends a command at once, even if its work cannot be interrupted. The exit status is
// 128 plus the number of the signal.
func TestSignalsStopCommands(t *testing.T) { //nolint:paralleltest // signals are sent to the whole process
	for _, c := range []struct {
		signal syscall.Signal
		code   int
		stderr string
	}{{syscall.SIGINT, 130, "joiner: stopped by SIGINT\n"}, {syscall.SIGTERM, 143, "joiner: stopped by SIGTERM\n"}} {
		guard := make(chan os.Signal, 1) // keeps the signal from stopping the test
		signal.Notify(guard, c.signal)
		started, release := make(chan struct{}), make(chan struct{})
		var errs strings.Builder
		root := cli.Root("test", cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs}, &cobra.Command{
			Use: "work",
			Run: func(*cobra.Command, []string) { close(started); <-release },
		})
		ended := make(chan int, 1)
		go func() { ended <- cli.Run(t.Context(), root, []string{"work"}) }()
		<-started
		if err := syscall.Kill(os.Getpid(), c.signal); err != nil {
			t.Fatal(err)
		}
		select {
		case code := <-ended:
			if code != c.code || errs.String() != c.stderr {
				t.Errorf("the command ended with %d and %q, want %d and %q", code, errs.String(), c.code, c.stderr)
			}
		case <-time.After(time.Minute):
			t.Fatal("the command still runs a minute after the signal")
		}
		close(release)
		signal.Stop(guard)
	}
}
