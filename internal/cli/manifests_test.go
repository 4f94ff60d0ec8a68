package cli_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/cli"
)

// manifestFolder holds manifests as users write them for Karpenter.
const manifestFolder = "../../bench/conformance/testdata/manifests"

// expectedNotes has the note that a plan of the file prints, by file. Plans of other files print none.
var expectedNotes = map[string]string{
	"node-overlay.yaml": "left out, although they count in a cluster whose controller has the feature gate NodeOverlay: 3 NodeOverlays",
	"static.yaml":       "left out: NodePool warm is kept at 6 nodes (spec.replicas) by the controller, for any number of pods",
}

// TestManifestsOfKarpenter plans each file. Each plan must place all pods and print only its note in expectedNotes.
func TestManifestsOfKarpenter(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(manifestFolder + "/*.yaml")
	if err != nil || len(files) < 22 { // a renamed folder has none
		t.Fatalf("there are %d manifests: %v; want at least 22", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			root := cli.Root("test", cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
			code := cli.Run(t.Context(), root, []string{"plan", "--strict", "--region=us-east-1", "-f", file})
			notes := strings.Split(strings.TrimSpace(errs.String()), "\n")
			want := []string{""}
			if expectedNotes[name] != "" {
				want = []string{"note: " + expectedNotes[name]}
			}
			if code != cli.ExitOK || !slices.Equal(notes, want) {
				t.Errorf("exit %d, notes %q; want %d, %q\n%s", code, notes, cli.ExitOK, want, out.String())
			}
		})
	}
	for name := range expectedNotes {
		if !slices.Contains(files, filepath.Join(manifestFolder, name)) {
			t.Errorf("expectedNotes has %s, but this file does not exist", name)
		}
	}
}
