// Package repair carries out a fix that a diagnosis printed, as it was printed.
//
// In: the text of the fix, the doors to Kubernetes and AWS of somebody who may change things.
// Out: the changes, each with what is there before and after, and whether it was made.
// Never: a change that was not shown first, a program of the user's machine, or a part of a fix that it cannot do whole.
package repair

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/fault"
	"github.com/joiner-sh/joiner/kube"
)

// Doors are the ways to what can be changed. Those that are nil are closed.
type Doors struct {
	Kube *kube.Patcher
	AWS  *AWS
	// Ask is what joiner prints when it is run with these words, which only read: correct and its options. Nil: it is not asked.
	Ask func(ctx context.Context, args []string) (string, error)

	// NoKube and NoAWS say why there are none of these doors, for the user.
	NoKube, NoAWS string
}

// Change is one command of a fix, ready to be made.
type Change struct {
	Command       string // as it was printed, without comments
	What          string // what it changes: "nodepool web", "access entry of arn:…"
	Before, After string // as text of several lines; empty: there is nothing

	apply func(context.Context) error
}

// ByHand is the error of a fix that needs a person: an editor, a decision, a command that this package does not know.
type ByHand struct {
	Line string // the line that it is about
	Why  string
}

func (e *ByHand) Error() string { return fmt.Sprintf("%s: do it by hand: %s", e.Why, e.Line) }

// Plan reads a fix and looks at what it would change. Nothing is changed. It fails with ByHand if any part of it needs a person.
func Plan(ctx context.Context, fix string, d Doors) ([]Change, error) {
	commands, err := read(fix)
	if err != nil {
		return nil, err
	}
	if len(commands) == 0 {
		return nil, &ByHand{Line: fix, Why: "it names no command"}
	}
	out := make([]Change, 0, len(commands))
	for _, c := range commands {
		change, err := d.plan(ctx, c)
		if err != nil {
			return nil, err
		}
		change.Command = c.text
		out = append(out, change)
	}
	return out, nil
}

func (d Doors) plan(ctx context.Context, c command) (Change, error) {
	if err := d.answer(ctx, c); err != nil {
		return Change{}, err
	}
	switch c.words[0] {
	case "kubectl":
		return d.planKube(ctx, c)
	case "aws":
		planned, ok := awsCommands()[c.name()]
		if !ok {
			return Change{}, c.byHand("this is none of the commands that can be made from here")
		}
		if d.AWS == nil {
			return Change{}, fmt.Errorf("reach AWS: %s", d.NoAWS)
		}
		options, err := c.options(3)
		if err != nil {
			return Change{}, err
		}
		return planned(ctx, d.AWS, options)
	}
	return Change{}, c.byHand("this is none of the commands that can be made from here")
}

// planKube looks at what a command of kubectl would change.
func (d Doors) planKube(ctx context.Context, c command) (Change, error) {
	deletes := len(c.words) > 1 && c.words[1] == "delete"
	var err error
	if deletes {
		_, err = c.doomed()
	} else {
		_, err = c.patch()
	}
	switch {
	case err != nil:
		return Change{}, err
	case d.Kube == nil:
		return Change{}, fmt.Errorf("reach Kubernetes: %s", d.NoKube)
	case deletes:
		return d.planDelete(ctx, c)
	}
	return d.planPatch(ctx, c)
}

// answer puts in what joiner says where the command asks it.
func (d Doors) answer(ctx context.Context, c command) error {
	for i, args := range c.asks {
		if d.Ask == nil {
			return c.byHand("joiner cannot be asked from here")
		}
		text, err := d.Ask(ctx, args)
		if err != nil {
			return err
		}
		c.words[i] = strings.TrimSpace(text)
	}
	return nil
}

// Apply makes the changes in their order, and stops at the first that fails. It returns how many were made.
func Apply(ctx context.Context, changes []Change) (int, error) {
	for i, c := range changes {
		if err := c.apply(ctx); err != nil {
			return i, undone(changes, i, err)
		}
	}
	return len(changes), nil
}

// undone says what is left to do where a fix stopped in its middle.
func undone(changes []Change, failed int, err error) error {
	if failed == 0 {
		return err
	}
	var left []string
	for _, c := range changes[failed:] {
		left = append(left, c.Command)
	}
	return fmt.Errorf("%w; of %d commands %d were made, and these are left: %s", err, len(changes), failed, strings.Join(left, "; "))
}

// permission turns the refusal of a call into the permission that is missing.
func permission(service, who string, err error) error {
	var aws *fault.Error
	if !errors.As(err, &aws) || aws.Kind != fault.Denied || aws.Reason != "Unauthorized" {
		return err
	}
	action, _, _ := strings.Cut(aws.Op, " ")
	if who == "" {
		who = "whoever runs this"
	}
	return fmt.Errorf("the permission %s:%s is missing: allow it to %s, or have somebody run this who has it", service, action, who)
}
