package lab_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/faults"
)

// TestFaults injects one fault of each layer in a lab. The fault must be joiner doctor's first finding, and the printed
// fix must work. LAB_FAULTS selects other faults by name, separated by commas; "all" selects all, as make
// diagnosis-report does.
func TestFaults(t *testing.T) {
	if err := faults.CheckTools(t.Context()); err != nil {
		t.Skip(err)
	}
	l := parallelLab(t, lab.Options{})
	joiner := program(t)
	restartController(t, l, faults.Settings()...)
	stage, err := faults.NewStage(t.Context(), l, joiner)
	if err != nil {
		t.Fatal(err)
	}
	wanted := strings.Split(os.Getenv("LAB_FAULTS"), ",")
	for _, f := range faults.All() {
		isDefault := wanted[0] == "" && f.Smoke // without LAB_FAULTS: one of each layer
		if !isDefault && wanted[0] != "all" && !slices.Contains(wanted, f.Name) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			stage.Say = func(line string) { t.Log(line) }
			r := stage.Play(t.Context(), f)
			if r.Err != nil {
				t.Error(r.Err)
			}
			if len(r.WrongFirst) > 0 {
				t.Errorf("doctor first reported unexpected findings, want none: %s", strings.Join(r.WrongFirst, "; "))
			}
		})
	}
}

// TestFaultsAreComplete checks that each fault has a unique name, and that each check has a fault or a reason in
// ChecksWithoutFault.
func TestFaultsAreComplete(t *testing.T) {
	t.Parallel()
	if problems := faults.Problems(); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}
