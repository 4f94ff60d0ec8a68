// Package faults injects the faults that users have reported into a lab, and tests that joiner doctor finds each cause.
//
// In: a running lab, and the fault to play in it.
// Out: the findings of doctor, the time until doctor found the fault, and whether the printed fix worked.
// Never: an expectation derived from the output of doctor. Each fault states its expected finding. A fix counts only if
// pods run after it.
package faults

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
)

// Fault is one way to break a lab.
type Fault struct {
	Name  string // unique: "entry-of-wrong-type"
	What  string // description in one line, for `lab fault list`
	Check string // ID of the check that must find the fault: "AUTH-2"
	Cause string // text that the finding's cause must contain
	// ExpectSuspicious means that doctor reports the fault only as suspicious: other evidence contradicts the fault, or
	// the fault has no effect yet.
	ExpectSuspicious bool
	// NeedsInstance means that doctor can detect the fault only after an instance was launched.
	NeedsInstance bool
	// NeedsPods means that doctor can detect the fault only while pods are pending.
	NeedsPods bool
	// Slow means that doctor needs most of the two minutes of Limit to find the fault. Run plays slow faults first, so
	// that it ends earlier with several labs.
	Slow bool
	// Wait is the delay from the join of the node until doctor reports the fault. Before that, the node can still
	// become healthy. Zero means no delay.
	Wait time.Duration
	// Smoke marks the few faults that every test run plays.
	Smoke bool
	// AuthMode is the cluster's authentication mode while the fault is played. Empty: ekscluster.AuthBoth.
	AuthMode string
	// IsExclusive means that the fault breaks more than its own objects: no other fault may be played at the same time.
	IsExclusive bool

	// Break injects the fault before the scene's objects are created. It changes these objects, or the lab.
	Break func(ctx context.Context, s *Scene) error
	// AfterCreate is called after the objects were created. nil: not called.
	AfterCreate func(ctx context.Context, s *Scene) error
	// Edit makes the user's change if the printed fix opens an editor. nil: the fix opens no editor.
	Edit func(ctx context.Context, s *Scene) error
}

// All returns all faults, in the order of the layers of diagnosis.
func All() []Fault {
	all := slices.Concat(mappingFaults(), roleFaults(), networkFaults(), endpointFaults(), planFaults(), bootFaults(),
		armFaults(), classFaults(), fleetFaults(), daemonFaults(), routeFaults(),
		launchFaults(), imageFaults(), scriptFaults(), instanceFaults(), aclFaults(), groupFaults())
	layers := map[string]diagnosis.Layer{}
	for _, c := range checks.Checks() {
		layers[c.ID] = c.Layer
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return int(layers[a.Check]) - int(layers[b.Check]) })
	return all
}

// Find returns the fault with the given name.
func Find(name string) (Fault, error) {
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
	}
	return Fault{}, fmt.Errorf("there is no fault %q; list the faults with `lab fault list`", name)
}
