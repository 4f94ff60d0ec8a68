package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/lab"
)

type upFlags struct {
	lab.Options
	joiner   string
	lifelike bool
}

func upCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use: "up", Short: "start a lab, print its environment variables, and keep it running until Ctrl-C",
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
	cmd.Flags().StringVar(&f.Region, "region", "us-east-1", "AWS region; must be in the embedded catalog")
	cmd.Flags().StringVar(&f.AuthMode, "authentication-mode", ekscluster.AuthBoth, strings.Join(authModes[:2], ", ")+" or "+authModes[2])
	cmd.Flags().StringVar(&f.joiner, "joiner", "", "also run this joiner program as the controller")
	cmd.Flags().BoolVar(&f.lifelike, "lifelike", false, "start instances and pods with realistic delays")
	return cmd
}

var (
	authModes = []string{ekscluster.AuthConfigMap, ekscluster.AuthAPI, ekscluster.AuthBoth}

	// clusterName matches the names that EKS accepts. Source: the EKS API reference, CreateCluster.
	clusterName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)
)

// check rejects invalid flags that would otherwise cause an error only while the lab starts, or no error at all.
func (f *upFlags) check() error {
	if !clusterName.MatchString(f.Cluster) {
		return fmt.Errorf("--cluster %q is not a valid EKS cluster name: use up to 100 letters, digits, hyphens and underscores, starting with a letter or digit", f.Cluster)
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
	return checkJoiner(f.joiner)
}

// keepUp starts the lab, and with --joiner also the controller. It returns when the lab ends, see stay.
func keepUp(cmd *cobra.Command, f upFlags) error {
	ctx := cmd.Context()
	l, err := lab.Start(ctx, f.Options)
	if err != nil {
		return err
	}
	defer l.Close()
	var controller *lab.Controller
	if f.joiner != "" {
		// No other computer needs to reach the controller.
		if controller, err = l.RunController(ctx, f.joiner, "BIND_ADDRESS=127.0.0.1"); err != nil {
			return err
		}
	}
	k := keptLab{lab: l, controller: controller, joiner: f.joiner, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
	return k.stay(ctx)
}

// quoted returns NAME=value with the value quoted for a POSIX shell, if that is necessary. To quote a value alone,
// callers pass an empty NAME.
func quoted(variable string) string {
	name, value, _ := strings.Cut(variable, "=")
	if !strings.ContainsFunc(value, isSpecial) {
		return variable
	}
	return name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// isSpecial reports whether a shell may interpret the character.
func isSpecial(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/.:_-+,@%", r)
	return !plain
}
