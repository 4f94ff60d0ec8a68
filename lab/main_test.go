package lab_test

import (
	"os"
	"testing"

	"github.com/joiner-sh/joiner/lab/component"
)

// TestMain makes the test binary serve as the programs of its own control plane.
func TestMain(m *testing.M) {
	if code, ok := component.Run(os.Args[1:]); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
