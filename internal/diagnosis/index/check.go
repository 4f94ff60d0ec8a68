package index

import "github.com/joiner-sh/joiner/internal/diagnosis"

// Check is one check of the evidence.
type Check struct {
	ID    string // "AUTH-2"
	Title string // what it checks, for lists
	// Layer is the stage of a node's life that the check is about. A failure in an early layer keeps later layers from being reached.
	Layer diagnosis.Layer
	// Fallback marks a check that knows a symptom but not its cause. It reports nothing if another check knows the cause.
	Fallback bool

	Judge func(*Index) []diagnosis.Finding
}
