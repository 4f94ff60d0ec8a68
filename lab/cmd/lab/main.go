// Command lab runs a Kubernetes control plane beside an emulated AWS, and shows Joiner at work there.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/component"
	"github.com/joiner-sh/joiner/lab/demo"
	"github.com/joiner-sh/joiner/lab/process"
)

func main() {
	if code, ok := component.Run(os.Args[1:]); ok {
		os.Exit(code)
	}
	// Client libraries of the lab's own process talk to nobody: what matters is said by the lab.
	klog.SetLogger(klog.Logger{})
	ctrl.SetLogger(klog.Logger{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil, interrupted && errors.Is(err, context.Canceled):
	default:
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lab", Short: "A Kubernetes control plane beside an emulated AWS, on this machine",
		SilenceUsage: true, SilenceErrors: true,
	}
	cmd.AddCommand(up(), kubeconfig(), showDemo())
	return cmd
}

func up() *cobra.Command {
	var o lab.Options
	var joiner string
	var lifelike bool
	cmd := &cobra.Command{
		Use: "up", Short: "start a lab, print how to reach it, and keep it until Ctrl-C", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Step = func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), text) }
			if lifelike {
				o.Pace = lab.Lifelike()
			}
			return keepUp(cmd, o, joiner)
		},
	}
	cmd.Flags().StringVar(&o.Cluster, "cluster", "lab", "name of the EKS cluster")
	cmd.Flags().StringVar(&o.Region, "region", "us-east-1", "AWS region; one of the embedded catalog")
	cmd.Flags().StringVar(&o.AuthMode, "authentication-mode", "", "CONFIG_MAP, API or API_AND_CONFIG_MAP")
	cmd.Flags().StringVar(&joiner, "joiner", "", "also run this joiner program as the controller")
	cmd.Flags().BoolVar(&lifelike, "lifelike", false, "let machines and pods take some time, as in life")
	return cmd
}

func keepUp(cmd *cobra.Command, o lab.Options, joiner string) error {
	ctx := cmd.Context()
	l, err := lab.Start(ctx, o)
	if err != nil {
		return err
	}
	defer l.Close()
	if joiner != "" {
		if _, err := l.RunController(ctx, joiner); err != nil {
			return err
		}
	}
	for _, variable := range l.Environment() {
		fmt.Fprintln(cmd.OutOrStdout(), "export "+variable)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "The lab is up. Ctrl-C ends it and removes %s\n", l.Home)
	select {
	case err := <-l.Failed():
		return err
	case <-ctx.Done():
		return nil
	}
}

func kubeconfig() *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "print the path of the newest running lab's kubeconfig", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			homes, err := process.Homes()
			if err != nil {
				return err
			}
			if len(homes) == 0 {
				return errors.New("no lab is running: start one with `lab up`")
			}
			fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(homes[0], "kubeconfig"))
			return nil
		},
	}
}

func showDemo() *cobra.Command {
	o := demo.Options{}
	cmd := &cobra.Command{
		Use: "demo", Short: "show the main job: pods go from Pending to Running on bought nodes, and nodes leave", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			o.Live = term.IsTerminal(int(os.Stdout.Fd()))
			o.Color = o.Live && os.Getenv("NO_COLOR") == ""
			return demo.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Joiner, "joiner", "", "the joiner program; built from the source around the working folder when left out")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave the lab up afterwards, until Ctrl-C")
	return cmd
}
