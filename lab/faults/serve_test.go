package faults

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
)

// TestInjectedText checks that the text describes the fault, a changed authentication mode, and the time until doctor
// can report the fault.
func TestInjectedText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ fault, before, now, want string }{
		{"row-in-api-mode", ekscluster.AuthBoth, ekscluster.AuthAPI,
			"The cluster's authentication mode is API until the fault is undone; before, the mode was API_AND_CONFIG_MAP.\n" +
				"To find the cause: joiner doctor\n"},
		// diagnosis.MaxStartupTaintAge
		{"startup-taint-stays", ekscluster.AuthBoth, ekscluster.AuthBoth,
			"To find the cause: joiner doctor, at least 75 seconds after the node has joined\n"},
		{"image-not-ready", ekscluster.AuthBoth, ekscluster.AuthBoth,
			"To find the cause: joiner doctor, which finds the cause after up to 2 minutes\n"},
	} {
		f, err := Find(tt.fault)
		if err != nil {
			t.Fatal(err)
		}
		want := capital(f.What) + ". Created EC2NodeClass, NodePool and Deployment x-1.\n" + tt.want +
			"To undo the fault: lab fault --undo " + tt.fault + "\n"
		if got := injectedText(f, "x-1", tt.before, tt.now); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.fault, got, want)
		}
	}
}
