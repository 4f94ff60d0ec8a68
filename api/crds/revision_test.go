package crds

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "add a revision if the definitions have changed")

// TestRevision checks that changed CRDs have a new revision, so that the controller can compare the CRDs of a cluster
// with its own, and that the revisions are numbered without gaps.
func TestRevision(t *testing.T) {
	number, digest := lastRevision()
	current := digestOf(Manifests())
	if *rewrite && digest != current {
		text := revisions + fmt.Sprintf("%d %s\n", number+1, current)
		if err := os.WriteFile("revisions.txt", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if digest != current {
		t.Errorf("the CRDs differ from revision %d: run go test ./api/crds -run TestRevision -rewrite", number)
	}
	wantNumber := 1
	for line := range strings.Lines(revisions) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 || len(fields[1]) != 64 || fields[0] != strconv.Itoa(wantNumber) {
			t.Errorf("revisions.txt: %q, want number %d and 64 hexadecimal digits", line, wantNumber)
		}
		wantNumber++
	}
}

func TestDefinitionsHaveRevision(t *testing.T) {
	t.Parallel()
	definitions, err := Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		if got := d.Annotations[KeyRevision]; got != strconv.Itoa(Revision()) {
			t.Errorf("%s has revision %q, want %d", d.Name, got, Revision())
		}
	}
}
