package disruption

import (
	"cmp"
	"slices"
)

// Member is a node of a pool with a fixed number of nodes.
type Member struct {
	Name   string // of the NodeClaim
	Bought bool   // its instance was launched
	Joined bool   // its Node has registered
	Kept   bool   // an annotation of the user protects it, or a pod on it
	Pods   int    // that would need another node
	// Left is the remaining share of its lifetime, 1 for one that never expires.
	Left float64
}

// Missing returns how many nodes to launch for a pool with active ones to have replicas. Limit bounds all its nodes, terminating ones
// included; nil for no limit. The second result reports whether the limit reduces the number.
func Missing(replicas, active, all int, limit *int) (missing int, isLimited bool) {
	missing = max(replicas-active, 0)
	if limit == nil {
		return missing, false
	}
	room := max(*limit-all, 0)
	return min(missing, room), missing > room
}

// Surplus returns the names of the members to remove so that replicas remain. Members without an instance or a Node are first, then those
// without pods, then those with few pods that would have to move soon anyway. Protected members are last.
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
