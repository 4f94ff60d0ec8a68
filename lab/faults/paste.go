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

// ErrNoTools means that kubectl or the AWS command line is not installed on this host, so that no fix can be run.
var ErrNoTools = errors.New("kubectl and the AWS command line are needed to run fixes; at least one of them is not installed")

// CheckTools returns ErrNoTools if kubectl or the AWS command line is not installed.
func CheckTools(ctx context.Context) error {
	for _, args := range [][]string{{"kubectl", "version", "--client"}, {"aws", "--version"}} {
		if exec.CommandContext(ctx, args[0], args[1:]...).Run() != nil {
			return ErrNoTools
		}
	}
	return nil
}

// applyFix runs a fix with RunFix. An empty fix is an error.
func (s *Stage) applyFix(ctx context.Context, fix string) error {
	if fix == "" {
		return errors.New("doctor printed no fix")
	}
	return s.RunFix(ctx, fix)
}

// RunFix runs the commands of a fix in a shell whose PATH contains joiner. The shell ends at the first command that
// fails.
func (s *Stage) RunFix(ctx context.Context, fix string) error {
	folder, err := filepath.Abs(filepath.Dir(s.Joiner))
	if err != nil {
		return fmt.Errorf("find the folder of joiner: %w", err)
	}
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", fix)
	// Version 1 of the AWS command line reads the region only from AWS_DEFAULT_REGION.
	shell.Env = append(append(os.Environ(), s.Lab.Environment()...), "AWS_DEFAULT_REGION="+s.Lab.Region,
		"PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBE_EDITOR=false") // a real editor would wait for input
	shell.Dir = s.Lab.Home
	if out, err := shell.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
