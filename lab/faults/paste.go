package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoTools means that kubectl or the AWS command line is not installed on this host, so that no fix can be pasted.
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

// applyFix pastes a fix into a shell. An empty fix is an error.
func (s *Stage) applyFix(ctx context.Context, fix string) error {
	if fix == "" {
		return errors.New("none is given")
	}
	return s.Paste(ctx, fix)
}

// Paste does what a user does with a fix: pastes it into a shell that finds joiner. The first line that fails ends it.
func (s *Stage) Paste(ctx context.Context, fix string) error {
	folder, err := filepath.Abs(filepath.Dir(s.Joiner))
	if err != nil {
		return fmt.Errorf("find joiner: %w", err)
	}
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", fix)
	// version 1 knows it by this name alone
	shell.Env = append(append(os.Environ(), s.Lab.Environment()...), "AWS_DEFAULT_REGION="+s.Lab.Region,
		"PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBE_EDITOR=false") // no user is there to edit anything
	shell.Dir = s.Lab.Home
	if out, err := shell.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
