package disruption

import (
	"cmp"
	"slices"
)

// Member is a node of a pool with a fixed number of nodes.
type Member struct {
	Name   string // of the NodeClaim
	Bought bool   // whether its instance was launched
	Joined bool   // whether its Node has registered
	Kept   bool   // whether a user's annotation on the node or on one of its pods protects it
	Pods   int    // number of pods that would need another node
	// Left is the remaining share of its lifetime, 1 if it never expires.
	Left float64
}

// Missing returns how many nodes to launch so that a pool with active nodes has replicas nodes. limit bounds all its
// nodes, including terminating ones; nil: no limit. The second result reports whether the limit reduces the number.
func Missing(replicas, active, all int, limit *int) (missing int, isLimited bool) {
	missing = max(replicas-active, 0)
	if limit == nil {
		return missing, false
	}
	room := max(*limit-all, 0)
	return min(missing, room), missing > room
}

// Surplus returns the names of the members to remove so that replicas members remain. Members without an instance or a
// Node come first, then members without pods, then members with few pods that must move soon anyway. Protected members
// come last.
func Surplus(members []Member, replicas int) []string {
	sorted := slices.SortedFunc(slices.Values(members), func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.cost(), b.cost()), cmp.Compare(a.Name, b.Name))
	})
	var out []string
	for _, m := range sorted[:max(len(sorted)-max(replicas, 0), 0)] {
		out = append(out, m.Name)
	}
	return out
}

func (m Member) rank() int {
	switch {
	case !m.Bought:
		return 0
	case !m.Joined:
		return 1
	case m.Kept:
		return 4
	case m.Pods == 0:
		return 2
	}
	return 3
}

func (m Member) cost() float64 { return float64(m.Pods) * m.Left }
