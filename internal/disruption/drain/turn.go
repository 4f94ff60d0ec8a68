package drain

import (
	"slices"
	"time"
)

// Turn is how far pods are that leave one after the other, from one node or several: each finds the place that was planned for it only if those before
// have theirs.
type Turn struct {
	Order []string        // the IDs of all of them
	There map[string]bool // those that have not been asked to leave yet
	// Placed: those that came in the place of the ones that left have a place.
	Placed bool
	// Since is when the turn came of the first that is there.
	Since time.Time
}

// TurnMost is how long one waits for the turn of another. After that all leave: the order is for the sake of a cheaper fleet, and holds nobody up.
const TurnMost = 10 * time.Second

// Next is whose turn it is; empty when all have been asked.
func (t Turn) Next() string {
	at := slices.IndexFunc(t.Order, func(id string) bool { return t.There[id] })
	if at < 0 {
		return ""
	}
	return t.Order[at]
}

// InTurn is the step with only the one pod to evict whose turn it is, as long as it is anybody's. Pods to be forced are forced all the same.
func (s Step) InTurn(t Turn, now time.Time) Step {
	next := t.Next()
	if next == "" || now.Sub(t.Since) >= TurnMost {
		return s
	}
	s.Held = len(s.Evict) > 0
	s.Evict = slices.DeleteFunc(slices.Clone(s.Evict), func(p Pod) bool { return !t.Placed || p.ID() != next })
	return s
}
