// Package cli has the commands of the command line, one per file, and their exit codes.
//
// In: arguments, files, a kubeconfig, an AWS configuration.
// Out: tables, JSON or YAML on standard output, one line per error on standard error, an exit code.
// Never: a decision. It reads input, calls the packages that decide, and prints their results.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joiner-sh/joiner/internal/cli/message"
)

// Exit codes of every command.
const (
	ExitOK       = 0 // the command succeeded and found no problem
	ExitFindings = 1 // the command succeeded and found a problem
	ExitFailed   = 2 // the command failed: bad input, no access, an outage
)

// Streams are the standard input, output and error of a command.
type Streams struct {
	In       io.Reader // standard input
	Out, Err io.Writer // standard output and error
}

// Root returns the command "joiner" with the commands of this package and the commands in more, which need packages
// that this package does not import.
func Root(version string, s Streams, more ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "joiner",
		Short: "Launch nodes for pending pods, and explain why a pod cannot be scheduled",
		Long: `Joiner is a node autoscaler for Amazon EKS that speaks Karpenter's API.

Exit status: 0 when the command succeeded, 1 when a check found a problem, 2 when
the command failed or could not read what it needs, and 130 or 143 when SIGINT or
SIGTERM stopped it.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version, // for --version
	}
	root.SetVersionTemplate("joiner {{.Version}}\n")
	root.SetIn(s.In)
	root.SetOut(&stdoutWriter{w: s.Out})
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(clarifyFlagError)
	root.AddCommand(newPlan(), newDoctor(), newCorrect(), newExplain(), newPause(), newResume(), newMigrate(),
		newCatalog(), newRender(), newCRDs(), newVersion(version))
	root.AddCommand(more...)
	root.InitDefaultCompletionCmd()
	rejectUnknownSubcommands(root)
	rejectUnknownHelpTopics(root)
	completeFlags(root)
	return root
}

// Run executes root with args and returns the exit code. It prints an error as one line, and joined errors as one line
// each. Findings and Unseen are not printed, because the output of the command contains them.
func Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := checkHelpTopic(root, args)
	if err == nil {
		err = execute(ctx, root, args)
	}
	if out, ok := root.OutOrStdout().(*stdoutWriter); ok && out.err != nil {
		err = fmt.Errorf("write the output: %w", message.WithoutSyscall(out.err)) // cobra ignores errors of writing help texts
	}
	var found Findings
	var unseen Unseen
	var signaled Interrupted
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &found):
		return ExitFindings
	case errors.As(err, &unseen):
		return ExitFailed
	case errors.As(err, &signaled):
		printErrors(root.ErrOrStderr(), err)
		return signaled.exitCode()
	}
	printErrors(root.ErrOrStderr(), err)
	return ExitFailed
}

// stdoutWriter keeps the first error of writing to standard output.
type stdoutWriter struct {
	w   io.Writer
	err error // first error of a write; nil: none
}

// Write writes to w.
func (s *stdoutWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

const maxErrors = 10

// printErrors prints an error, or each of joined errors, up to maxErrors.
func printErrors(w io.Writer, err error) {
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for i, err := range errs {
		if i == maxErrors {
			fmt.Fprintf(w, "joiner: and %d more\n", len(errs)-maxErrors)
			return
		}
		fmt.Fprintln(w, "joiner: "+message.OneLine(err.Error()))
	}
}

// Findings is the error of a command that printed its output and found problems. Count is the number of problems.
type Findings struct{ Count int }

// Error returns the number of problems.
func (f Findings) Error() string { return fmt.Sprintf("%d findings", f.Count) }

// Unseen is the error of a command that printed its output, but could not read some of its input. What names that
// input.
type Unseen struct{ What []string }

// Error names the input.
func (u Unseen) Error() string { return "could not read " + strings.Join(u.What, " and ") }

// emptyFlag returns an error if one of the flags was given an empty value, for example by an unset shell variable.
func emptyFlag(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if f := flags.Lookup(name); f.Changed && f.Value.String() == "" {
			placeholder, _ := pflag.UnquoteUsage(f)
			return fmt.Errorf("--%s is empty: give %s, or leave it out", name, placeholder)
		}
	}
	return nil
}
