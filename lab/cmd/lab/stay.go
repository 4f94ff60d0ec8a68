package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/faults"
)

// keptLab is a lab that stays up until Ctrl-C.
type keptLab struct {
	lab        *lab.Lab
	controller *lab.Controller // nil: no controller runs
	joiner     string          // path of the controller's program
	out, errs  io.Writer
}

// stay prints the environment variables of the lab, and returns when the context ends or the lab fails. Meanwhile it
// prints a message if the controller ends.
func (k keptLab) stay(ctx context.Context) error {
	if err := faults.Serve(ctx, k.lab); err != nil {
		return err
	}
	// CLUSTER_NAME is printed because the lab's kubeconfig, unlike that of EKS, does not contain the cluster's name.
	// Commands under test must not depend on these variables: fixes and guides set the name themselves.
	var exports strings.Builder
	for _, variable := range append(k.lab.Environment(), "CLUSTER_NAME="+k.lab.Cluster, "NODE_ROLE="+lab.NodeRole) {
		exports.WriteString("export " + quoted(variable) + "\n")
	}
	if _, err := io.WriteString(k.out, exports.String()); err != nil {
		return fmt.Errorf("print the variables of the lab: %w", err)
	}
	if err := printFirstSteps(k.errs, k.lab, k.controller != nil); err != nil {
		return err
	}
	var ended <-chan struct{} // nil (never ready) without a controller, and after its end
	if k.controller != nil {
		ended = k.controller.Done()
	}
	for {
		select {
		case err := <-k.lab.Failed():
			return err
		case <-ctx.Done():
			return nil
		case <-ended:
			ended = nil
			if ctx.Err() == nil { // otherwise Ctrl-C has ended the controller and this command
				fmt.Fprintf(k.errs, "The controller has ended; the lab keeps running. %v\nTo start the controller again, with the variables above:\n  %s\n", k.controller.Err(), controllerLine(k.lab.Cluster, k.joiner))
			}
		}
	}
}

// withJoiner returns a check of the command line that runs before anything is started. The check rejects arguments, and
// a --joiner program that does not exist.
func withJoiner(joiner *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.NoArgs(cmd, args); err != nil {
			return err
		}
		return checkJoiner(*joiner)
	}
}

// checkJoiner rejects a --joiner that is not a program. An empty path is valid.
func checkJoiner(path string) error {
	if path == "" {
		return nil
	}
	if _, err := exec.LookPath(path); err != nil {
		return fmt.Errorf("--joiner: %w; build one with: go build -o joiner ./cmd/joiner", err)
	}
	return nil
}
