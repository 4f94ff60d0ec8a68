package trouble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/world"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// Edit does what `kubectl edit ec2nodeclass NAME   # …` asks for: it fails unless the fix says that, and all of the words.
func Edit(change func(s *Scene), words ...string) func(context.Context, *Scene, string) error {
	return func(ctx context.Context, s *Scene, fix string) error {
		kind, object := "ec2nodeclass", client.Object(s.Class)
		if strings.HasPrefix(fix, "kubectl edit nodepool ") {
			kind, object = "nodepool", s.Pool
		}
		if !strings.HasPrefix(fix, "kubectl edit "+kind+" "+s.Name+"   # ") {
			return fmt.Errorf("it does not say to edit %s %s", kind, s.Name)
		}
		for _, w := range words {
			if !strings.Contains(fix, w) {
				return fmt.Errorf("it does not say %q", w)
			}
		}
		if err := s.Lab.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(s)
		return s.Lab.Client.Update(ctx, object)
	}
}

// unjoined deletes the NodeClaims of the scene whose instances are no nodes.
func (s *Scene) unjoined(ctx context.Context) error {
	return s.Lab.Client.DeleteAllOf(ctx, &karpv1.NodeClaim{}, client.MatchingLabels{karpv1.LabelNodePool: s.Name})
}

// subnets are the ids of subnets.
func subnets(all []*world.Subnet) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.ID)
	}
	return out
}
