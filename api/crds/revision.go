package crds

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
)

// KeyRevision is the annotation of a CRD with the revision of the API. CRDs without this annotation were installed by
// Karpenter or by hand.
const KeyRevision = "joiner.sh/crds-revision"

// revisions has a line for each published state of the CRDs: its number and its digest.
//
//go:embed revisions.txt
var revisions string

// Revision returns the number of the CRDs' current state, counted from 1. A higher revision is newer, and accepts all
// objects that a lower one accepts.
func Revision() int {
	number, _ := lastRevision()
	return number
}

// lastRevision returns the number and the digest in the last line of revisions.
func lastRevision() (number int, digest string) {
	for line := range strings.Lines(revisions) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		// TestRevision fails on an invalid line.
		_, _ = fmt.Sscanf(line, "%d %s", &number, &digest)
	}
	return number, digest
}

// digestOf returns the SHA-256 digest of the YAML of all definitions, in hexadecimal.
func digestOf(manifests []Manifest) string {
	hash := sha256.New()
	for _, m := range manifests {
		hash.Write([]byte(m.YAML))
	}
	return hex.EncodeToString(hash.Sum(nil))
}
