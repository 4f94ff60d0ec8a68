package trouble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ErrNoTools says that this machine has neither kubectl nor the AWS command line, so that no fix can be pasted.
var ErrNoTools = errors.New("kubectl and the AWS command line are needed to do what a fix says, and one of them is not installed")

// Tools returns ErrNoTools where a fix cannot be pasted into a shell.
func Tools(ctx context.Context) error {
	for _, args := range [][]string{{"kubectl", "version", "--client"}, {"aws", "--version"}} {
		if exec.CommandContext(ctx, args[0], args[1:]...).Run() != nil {
			return ErrNoTools
		}
	}
	return nil
}

// mend does what a fix says.
func (s *Stage) mend(ctx context.Context, scene *Scene, f Fault, fix string) error {
	if fix == "" {
		return errors.New("none is given")
	}
	if f.Hand != nil {
		return f.Hand(ctx, scene, fix)
	}
	return scene.Paste(ctx, fix)
}

// Paste does what a user does with a fix: pastes it into a shell. A line that fails fails all.
func (s *Scene) Paste(ctx context.Context, fix string) error {
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", fix)
	shell.Env = append(append(os.Environ(), s.Lab.Environment()...), "AWS_DEFAULT_REGION="+s.Lab.Region) // version 1 knows it by this name alone
	shell.Dir = s.Lab.Home
	if out, err := shell.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
