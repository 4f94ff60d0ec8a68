package lab_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/faults"
)

// TestFaults injects one fault of each layer in a lab: joiner doctor must find it first, and its printed fix must work.
// LAB_FAULTS names other faults, separated by commas; "all" plays all of them, as make diagnosis-report does.
func TestFaults(t *testing.T) {
	if err := faults.Tools(t.Context()); err != nil {
		t.Skip(err)
	}
	l := beside(t, lab.Options{})
	joiner := program(t)
	restart(t, l, faults.Settings()...)
	stage, err := faults.NewStage(t.Context(), l, joiner)
	if err != nil {
		t.Fatal(err)
	}
	wanted := strings.Split(os.Getenv("LAB_FAULTS"), ",")
	for _, f := range faults.All() {
		if !slices.Contains(wanted, f.Name) && wanted[0] != "all" && (wanted[0] != "" || !f.Smoke) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			stage.Say = func(line string) { t.Log(line) }
			r := stage.Play(t.Context(), f)
			if r.Err != nil {
				t.Error(r.Err)
			}
			if len(r.Wrong) > 0 {
				t.Errorf("before the cause doctor reported: %s", strings.Join(r.Wrong, "; "))
			}
		})
	}
}

// TestFaultsAreWhole checks that each fault has a unique name, and that each check has a fault or a reason in Untried.
func TestFaultsAreWhole(t *testing.T) {
	t.Parallel()
	if problems := faults.Problems(); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}
