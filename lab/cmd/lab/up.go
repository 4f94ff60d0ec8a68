package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/trouble"
	"github.com/joiner-sh/joiner/world"
)

// upFlags are those of lab up.
type upFlags struct {
	lab.Options
	joiner   string
	lifelike bool
}

func up() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use: "up", Short: "start a lab, print how to reach it, and keep it until Ctrl-C",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return err
			}
			return f.check()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Step = func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), text) }
			if f.lifelike {
				f.Pace = lab.Lifelike()
			}
			return keepUp(cmd, f)
		},
	}
	cmd.Flags().StringVar(&f.Cluster, "cluster", "lab", "name of the EKS cluster")
	cmd.Flags().StringVar(&f.Region, "region", "us-east-1", "AWS region; one of the embedded catalog")
	cmd.Flags().StringVar(&f.AuthMode, "authentication-mode", world.AuthBoth, strings.Join(authModes[:2], ", ")+" or "+authModes[2])
	cmd.Flags().StringVar(&f.joiner, "joiner", "", "also run this joiner program as the controller")
	cmd.Flags().BoolVar(&f.lifelike, "lifelike", false, "let machines and pods take some time, as in life")
	return cmd
}

var (
	authModes = []string{world.AuthConfigMap, world.AuthAPI, world.AuthBoth}

	// clusterName is what EKS takes for one. Source: the EKS API reference, CreateCluster.
	clusterName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)
)

// check refuses what would only come to light once half of the lab is up, or never.
func (f *upFlags) check() error {
	if !clusterName.MatchString(f.Cluster) {
		return fmt.Errorf("--cluster %q is no name that EKS takes: use up to 100 letters, digits, hyphens and underscores, a letter or digit first", f.Cluster)
	}
	if !slices.Contains(authModes, f.AuthMode) {
		return fmt.Errorf("--authentication-mode %q is unknown: use %s or %s", f.AuthMode, strings.Join(authModes[:2], ", "), authModes[2])
	}
	table, err := catalog.Embedded()
	if err != nil {
		return err
	}
	if _, err := table.Region(f.Region); err != nil {
		return fmt.Errorf("--region: %w", err)
	}
	if f.joiner != "" {
		if _, err := exec.LookPath(f.joiner); err != nil {
			return fmt.Errorf("--joiner: %w; build one with: go build -o joiner ./cmd/joiner", err)
		}
	}
	return nil
}

func keepUp(cmd *cobra.Command, f upFlags) error {
	ctx := cmd.Context()
	l, err := lab.Start(ctx, f.Options)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := trouble.Serve(ctx, l); err != nil {
		return err
	}
	var ended <-chan struct{} // nil: there is no controller that could end
	var controller *lab.Controller
	if f.joiner != "" {
		// Nobody but this machine has any business with it.
		if controller, err = l.RunController(ctx, f.joiner, "BIND_ADDRESS=127.0.0.1"); err != nil {
			return err
		}
		ended = controller.Done()
	}
	// EKS's kubeconfig says the cluster's name, the lab's does not. What is tested must do without: fixes and guides say it themselves.
	for _, variable := range append(l.Environment(), "CLUSTER_NAME="+l.Cluster) {
		fmt.Fprintln(cmd.OutOrStdout(), "export "+quoted(variable))
	}
	if err := welcome(cmd.ErrOrStderr(), l, controller != nil); err != nil {
		return err
	}
	for {
		select {
		case err := <-l.Failed():
			return err
		case <-ctx.Done():
			return nil
		case <-ended:
			ended = nil
			if !errors.Is(ctx.Err(), context.Canceled) { // Ctrl-C ends both
				fmt.Fprintf(cmd.ErrOrStderr(), "The controller is gone; the lab stays up without it. %v\nTo start it again, with the variables above:\n  %s\n", controller.Err(), byHand(l.Cluster, f.joiner))
			}
		}
	}
}

// quoted writes NAME=value so that a shell reads it as it is.
func quoted(variable string) string {
	name, value, _ := strings.Cut(variable, "=")
	if !strings.ContainsFunc(value, isSpecial) {
		return variable
	}
	return name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// isSpecial reports whether a shell may read more than the character itself into it.
func isSpecial(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/.:_-+,@%", r)
	return !plain
}
