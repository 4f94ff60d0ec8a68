// Package faults breaks a lab in every way that users have reported, and holds joiner doctor to finding each.
//
// In: a running lab, and the fault to play in it.
// Out: what doctor said of it, how soon, and whether its fix, done as it is printed, mended it.
// Never: a verdict of its own: what is wrong is what the fault broke, and what is right is that pods run.
package faults

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// Fault is one way to break a lab.
type Fault struct {
	Name  string // "entry-of-wrong-type"; unique
	What  string // what it does, in one line, for `lab fault list`
	Check string // id of the check that must find it: "AUTH-2"
	Cause string // part of the sentence that must be told
	// Hint is true of what doctor is to call suspicious only: it works against what can be read, or will go wrong later.
	Hint bool
	// After is true of what can be known only once an instance was launched.
	After bool
	// NeedsPods is true of what is not there before somebody's pods wait.
	NeedsPods bool
	// Slow is true of what takes most of the two minutes; it is played first, so that nothing waits for it.
	Slow bool
	// Wait is how long after the node has joined doctor says nothing yet, because all may be well; 0: it does not wait.
	Wait time.Duration
	// Smoke is true of the few that every test run plays.
	Smoke bool
	// AuthMode is what the cluster's authentication mode is while it is played. Empty: world.AuthBoth.
	AuthMode string
	// Alone is true of what breaks more than its own objects, so that it is not played beside another fault.
	Alone bool

	// Break changes the scene's objects, which are made afterwards, and whatever else of the lab.
	Break func(ctx context.Context, s *Scene) error
	// Then goes on breaking once the objects are there and, unless they are not to be, the first instance runs; nil: nothing.
	Then func(ctx context.Context, s *Scene) error
	// Edit does what a person does where the fix opens an editor, and says what to write; nil: the fix needs nobody.
	Edit func(ctx context.Context, s *Scene) error
}

// All returns all faults, in the order of a node's life.
func All() []Fault {
	all := slices.Concat(mappingFaults(), roleFaults(), networkFaults(), endpointFaults(), planFaults(), bootFaults(), armFaults(), classFaults(), fleetFaults(), daemonFaults(), publicFaults(),
		launchFaults(), imageFaults(), scriptFaults(), instanceFaults(), aclFaults(), groupFaults())
	layers := map[string]diagnosis.Layer{}
	for _, c := range diagnosis.Checks() {
		layers[c.ID] = c.Layer
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return int(layers[a.Check]) - int(layers[b.Check]) })
	return all
}

// Find returns the fault of a name.
func Find(name string) (Fault, error) {
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
	}
	return Fault{}, fmt.Errorf("there is no fault %q: `lab fault list` has them all", name)
}
