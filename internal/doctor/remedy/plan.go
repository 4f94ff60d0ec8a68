// Package remedy applies the fix of a diagnosis, from its structured steps and never from its text.
//
// In: the steps of a fix; clients of Kubernetes and AWS with the user's permissions.
// Out: the changes, each with the state before and after; the number of changes that were made.
// Never: a change without its text for review, a call of another program, a part of a fix that cannot be applied as a
// whole, or the deletion of an object that has changed since the diagnosis.
package remedy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// Cluster changes Kubernetes objects with the user's permissions. kubeclient.Patcher implements it.
type Cluster interface {
	DryRun(ctx context.Context, p kubeclient.Patch) (kubeclient.PatchDryRun, error)
	Apply(ctx context.Context, p kubeclient.Patch, t kubeclient.PatchDryRun) error
	DryRunDelete(ctx context.Context, kind, name string) (d kubeclient.Deletion, found bool, err error)
	Delete(ctx context.Context, d kubeclient.Deletion) error
}

// Clients are the clients for the objects that a fix can change. Plan returns an error for a change that needs a nil
// client.
type Clients struct {
	Kube Cluster
	AWS  *AWS
	// RunCorrect returns the output of the read-only command joiner ARGS, where args start with "correct". Nil: fixes
	// that need the command are refused.
	RunCorrect func(ctx context.Context, args []string) (string, error)

	// NoKube and NoAWS are the reasons, for the user, why Kube or AWS is nil.
	NoKube, NoAWS string
}

// Change is one step of a fix, ready to be made.
type Change struct {
	Command       string // command of the step, without comments
	What          string // changed object: "nodepool web", "access entry of arn:…"
	Before, After string // state of the object, as lines of text; empty: it does not exist, or was not read

	apply func(context.Context) error // makes the change
}

// ManualStepError is the error of a fix that only the user can apply, because it needs an editor, a decision, or an
// unsupported step.
type ManualStepError struct {
	Line string // the step that only the user can do
	Why  string // the reason
}

// Error returns the reason and the step.
func (e *ManualStepError) Error() string { return fmt.Sprintf("%s: do it by hand: %s", e.Why, e.Line) }

func byHand(s fix.Step, why string) *ManualStepError {
	return &ManualStepError{Line: s.String(), Why: why}
}

// Plan returns the changes that the steps of a fix would make, without making them. Read-only steps are left out. The
// error is a *ManualStepError if the fix makes no change, or has a step that only the user can do.
func Plan(ctx context.Context, f fix.Fix, d Clients) ([]Change, error) {
	var out []Change
	if !f.Changes() && !f.Correction().IsZero() {
		return nil, byHand(f.Correction().Steps()[0], "joiner cannot carry out any of its steps")
	}
	if !f.Changes() {
		return nil, &ManualStepError{Line: f.String(), Why: "the fix changes nothing and only shows information for a decision"}
	}
	for _, s := range f.Steps() {
		if s.Kind() == fix.ReadOnly {
			continue
		}
		change, err := d.plan(ctx, s)
		if err != nil {
			return nil, err
		}
		change.Command = s.Command()
		out = append(out, change)
	}
	return out, nil
}

func (d Clients) plan(ctx context.Context, s fix.Step) (Change, error) {
	call, isAWS := s.AWS()
	action, isKube := s.Kubernetes()
	switch {
	case s.Kind() != fix.Change:
		return Change{}, byHand(s, "only a user can do it")
	case !s.IsComplete():
		return Change{}, byHand(s, "a placeholder must be replaced")
	case isAWS:
		return d.planAWS(ctx, s, call)
	case isKube:
		return d.planKube(ctx, s, action)
	}
	return Change{}, byHand(s, "joiner cannot carry out this step")
}

func (d Clients) planAWS(ctx context.Context, s fix.Step, call fix.AWS) (Change, error) {
	planCall, ok := awsCalls()[call.Service+" "+call.Action]
	if !ok {
		return Change{}, byHand(s, "joiner cannot make this call")
	}
	for _, p := range call.Params {
		if p.From != nil || len(p.Values) != 1 {
			return Change{}, byHand(s, "the parameter "+p.Name+" is not supported")
		}
	}
	if d.AWS == nil {
		return Change{}, fmt.Errorf("reach AWS: %s", d.NoAWS)
	}
	return planCall(ctx, d.AWS, call)
}

func (d Clients) planKube(ctx context.Context, s fix.Step, k fix.Kubernetes) (Change, error) {
	isDelete := k.Verb == "delete" && k.Resource == "nodeclaim" && len(k.Claims) > 0
	switch {
	case k.Verb == "delete" && !isDelete:
		return Change{}, byHand(s, "joiner deletes only NodeClaims")
	case k.Verb != "patch" && !isDelete:
		return Change{}, byHand(s, "of the actions on Kubernetes, joiner carries out only patches and deletions of NodeClaims")
	case len(k.Correct) > 0 && d.RunCorrect == nil:
		return Change{}, byHand(s, "joiner cannot run itself here")
	case d.Kube == nil:
		return Change{}, fmt.Errorf("reach Kubernetes: %s", d.NoKube)
	case isDelete:
		return d.planDelete(ctx, k)
	}
	return d.planPatch(ctx, s, k)
}

func (d Clients) planPatch(ctx context.Context, s fix.Step, k fix.Kubernetes) (Change, error) {
	if len(k.Names) != 1 || !slices.Contains([]string{kubeclient.PatchMerge, kubeclient.PatchJSON}, k.PatchType) {
		return Change{}, byHand(s, "it is neither a merge patch nor a JSON patch of one object")
	}
	p := kubeclient.Patch{Group: k.Group, Kind: k.Resource, Namespace: k.Namespace, Name: k.Names[0], Type: k.PatchType, Text: k.Patch}
	if len(k.Correct) > 0 {
		text, err := d.RunCorrect(ctx, k.Correct)
		if err != nil {
			return Change{}, err
		}
		p.Text = strings.TrimSpace(text)
	}
	return d.tryPatch(ctx, p)
}

// Apply makes the changes in their order, and stops at the first that fails. It returns how many changes it made.
func Apply(ctx context.Context, changes []Change) (int, error) {
	for i, c := range changes {
		if err := c.apply(ctx); err != nil {
			return i, partialError(changes, i, err)
		}
	}
	return len(changes), nil
}

// partialError returns the error of a fix that stopped at the change with index failed, with the commands that were not
// run.
func partialError(changes []Change, failed int, err error) error {
	if failed == 0 {
		return err
	}
	var remaining []string
	for _, c := range changes[failed:] {
		remaining = append(remaining, c.Command)
	}
	return fmt.Errorf("%w; %[3]d of %[2]d commands were run, these remain: %[4]s", err, len(changes), failed, strings.Join(remaining, "; "))
}

// permissionError returns err, or an error that names the missing permission if err is the error of a denied call.
// caller is as in NewAWS.
func permissionError(service, caller string, err error) error {
	var aws *awserr.Error
	if !errors.As(err, &aws) || aws.Kind != awserr.Denied || aws.Reason != "Unauthorized" {
		return err
	}
	action, _, _ := strings.Cut(aws.Op, " ")
	if caller == "" {
		caller = "the user who runs this"
	}
	return fmt.Errorf("the permission %s:%s is missing: allow it to %s, or run this as a user who has it", service, action, caller)
}
