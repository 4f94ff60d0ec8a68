// Command lab runs a Kubernetes control plane beside an emulated AWS, and runs Joiner in this cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/component"
	"github.com/joiner-sh/joiner/lab/demo"
)

const (
	exitOK       = 0
	exitFailed   = 1 // the command failed
	exitBadInput = 2 // the command line is invalid
)

func main() {
	if code, ok := component.Run(os.Args[1:]); ok {
		os.Exit(code)
	}
	// Client libraries do not log: the lab reports errors itself.
	klog.SetLogger(klog.Logger{})
	ctrl.SetLogger(klog.Logger{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	isParsed := false
	cmd := rootCommand(&isParsed)
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errs)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil, ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitOK // also after Ctrl-C
	case isParsed:
		fmt.Fprintf(errs, "lab: %v\n", err)
		return exitFailed
	}
	fmt.Fprintf(errs, "lab: %s\n", strings.Join(strings.Fields(err.Error()), " "))
	return exitBadInput
}

// rootCommand returns the command lab, which sets isParsed after it has parsed a valid command line.
func rootCommand(isParsed *bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "lab", Short: "A Kubernetes control plane beside an emulated AWS, on this host",
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) { *isParsed = true },
	}
	cmd.AddCommand(upCommand(), kubeconfigCommand(), demoCommand(), faultCommand(), diagnosisReportCommand(), sizingCommand(), liveCommand())
	return cmd
}

func kubeconfigCommand() *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "print the path of the running lab's kubeconfig; KUBECONFIG selects one of several labs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := runningHome()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), kubeconfigOf(home))
			return err
		},
	}
}

func demoCommand() *cobra.Command {
	o := demo.Options{}
	keep := false
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "show what Joiner does: pods go from Pending to Running on new nodes, and empty nodes are removed",
		Args:  withJoiner(&o.Joiner),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep {
				o.Keep = func(ctx context.Context, l *lab.Lab, controller *lab.Controller, joiner string) error {
					k := keptLab{lab: l, controller: controller, joiner: joiner, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
					return k.stay(ctx)
				}
			}
			o.Out = cmd.OutOrStdout()
			o.Live = term.IsTerminal(int(os.Stdout.Fd()))
			o.Color = o.Live && os.Getenv("NO_COLOR") == ""
			return demo.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Joiner, "joiner", "", "the joiner program; empty: build it from the checkout of the working folder")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the lab running after the demo, until Ctrl-C")
	return cmd
}
