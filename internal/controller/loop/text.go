package loop

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// FindingText describes a finding: "perhaps" if it is not certain, the cause, and the fix as a command for a shell.
func FindingText(f diagnosis.Finding) string {
	text := fix.Visible(f.Cause)
	if f.Verdict != diagnosis.Broken || f.Certainty == diagnosis.Possible {
		text = "perhaps " + text
	}
	if correction := f.Fix.Correction(); !correction.IsZero() {
		text += ". Fix: " + correction.String()
	}
	return text + " (" + f.Check + ")"
}

// Count returns a count with its noun: "1 pod", "2 pods".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// UID converts a text to the UID of an object.
func UID(text string) types.UID { return types.UID(text) }

// SetOf returns the names as a set.
func SetOf(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, name := range names {
		out[name] = true
	}
	return out
}
