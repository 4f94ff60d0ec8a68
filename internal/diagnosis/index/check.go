package index

import "github.com/joiner-sh/joiner/internal/diagnosis"

// Check is one check of the evidence.
type Check struct {
	ID    string // "AUTH-2"
	Title string // the state that the check expects; lists of checks show it
	// Layer is the stage of a node's life that the check is about. A node that fails in one layer does not reach the
	// later layers.
	Layer diagnosis.Layer
	// Fallback marks a check that knows a symptom but not its cause. Such a check reports nothing if another check
	// knows the cause.
	Fallback bool

	// Judge returns the findings of the check; nil means no problem.
	Judge func(*Index) []diagnosis.Finding
}
