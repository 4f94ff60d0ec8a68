package drain

import (
	"slices"
	"time"
)

// Turn is the state of pods that move one at a time, from one node or several. kube-scheduler finds a node for each pod
// only after the previous pods have moved.
type Turn struct {
	Order     []string        // IDs of all pods, in eviction order
	Remaining map[string]bool // IDs of the pods that are not evicted yet
	// Placed is true if the replacements of the evicted pods are scheduled.
	Placed bool
	// Since is when the turn of the next pod began.
	Since time.Time
}

// MaxTurnTime is the maximum time for which the other pods wait for the pod whose turn it is. After that all pods are
// evicted, because the order only serves a lower price.
const MaxTurnTime = 10 * time.Second

// Next returns the ID of the first remaining pod in the order; empty if all were evicted.
func (t Turn) Next() string {
	at := slices.IndexFunc(t.Order, func(id string) bool { return t.Remaining[id] })
	if at < 0 {
		return ""
	}
	return t.Order[at]
}

// InTurn removes from Evict the pods whose turn it is not. The next pod stays in Evict only if the replacements of the
// evicted pods are scheduled. InTurn changes nothing if no pod is left in the order, or after MaxTurnTime. Forced pods
// stay in the step.
func (s Step) InTurn(t Turn, now time.Time) Step {
	next := t.Next()
	if next == "" || now.Sub(t.Since) >= MaxTurnTime {
		return s
	}
	s.Held = len(s.Evict) > 0
	s.Evict = slices.DeleteFunc(slices.Clone(s.Evict), func(p Pod) bool { return !t.Placed || p.ID() != next })
	return s
}
