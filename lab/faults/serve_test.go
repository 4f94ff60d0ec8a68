package faults

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
)

// TestPlayed: the answer names the fault, a changed authentication mode, and when doctor can report the fault.
func TestPlayed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ fault, before, now, want string }{
		{"row-in-api-mode", ekscluster.AuthBoth, ekscluster.AuthAPI, "The cluster's authentication mode is API until the fault is ended; it was API_AND_CONFIG_MAP.\nTo find out: joiner doctor\n"},
		{"startup-taint-stays", ekscluster.AuthBoth, ekscluster.AuthBoth,
			"To find out: joiner doctor, 75 seconds after the node has joined: until then all may be well\n"},
		{"image-not-ready", ekscluster.AuthBoth, ekscluster.AuthBoth, "To find out: joiner doctor, which may take up to 2 minutes to know\n"},
	} {
		f, err := Find(tt.fault)
		if err != nil {
			t.Fatal(err)
		}
		want := capital(f.What) + ". EC2NodeClass, NodePool and Deployment x-1 are there.\n" + tt.want +
			"To end it:   lab fault --undo " + tt.fault + "\n"
		if got := played(f, "x-1", tt.before, tt.now); got != want {
			t.Errorf("it says\n%s\nwant\n%s", got, want)
		}
	}
}
