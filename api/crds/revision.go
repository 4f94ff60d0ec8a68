package crds

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
)

// KeyRevision is the annotation of a definition that says which revision of the API it is of. Definitions without it are
// somebody else's: Karpenter's, or written by hand.
const KeyRevision = "joiner.sh/crds-revision"

// revisions has a line for each state that the definitions were ever in: number and digest.
//
//go:embed revisions.txt
var revisions string

// Revision counts the states that the definitions were ever in, from 1. A higher one is newer, and takes all objects that
// a lower one took.
func Revision() int {
	number, _ := lastRevision()
	return number
}

func lastRevision() (number int, digest string) {
	for line := range strings.Lines(revisions) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		// TestRevision reads each line the same way, and fails on one that cannot be read.
		_, _ = fmt.Sscanf(line, "%d %s", &number, &digest)
	}
	return number, digest
}

// digestOf is that of the files of all definitions.
func digestOf(manifests []Manifest) string {
	sum := sha256.New()
	for _, m := range manifests {
		sum.Write([]byte(m.YAML))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
