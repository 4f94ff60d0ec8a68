package lab_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/lab"
	"github.com/joiner-sh/joiner/lab/faults"
)

// TestFaults plays a fault of each layer in a lab: joiner doctor must find it first, and its fix, done as it is printed, must mend it.
// LAB_FAULTS names others to play, with commas between them; "all" is all of them, which is what make diagnosis-report does.
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
				t.Errorf("before the cause it told: %s", strings.Join(r.Wrong, "; "))
			}
		})
	}
}

// TestFaultsAreWhole: each fault can be told from the others, and each check has one, or a reason to have none.
func TestFaultsAreWhole(t *testing.T) {
	t.Parallel()
	if problems := faults.Problems(); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}
