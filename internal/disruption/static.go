package disruption

import (
	"cmp"
	"slices"
)

// Member is a node of a pool with a fixed number of nodes.
type Member struct {
	Name      string // name of the NodeClaim
	Launched  bool   // whether its instance was launched
	Joined    bool   // whether its Node has registered
	Protected bool   // whether a user's annotation on the node or on one of its pods protects it
	Pods      int    // number of pods that would need another node
	// LifeLeft is the remaining share of the node's lifetime, from 0 to 1; 1 if it never expires.
	LifeLeft float64
}

// Missing returns how many nodes to launch so that a pool has replicas nodes. active is the number of the pool's nodes
// that are not terminating, all the number with terminating nodes, and limit the maximum of all (nil: no limit).
// isLimited reports whether the limit reduces the result.
func Missing(replicas, active, all int, limit *int) (missing int, isLimited bool) {
	missing = max(replicas-active, 0)
	if limit == nil {
		return missing, false
	}
	room := max(*limit-all, 0)
	return min(missing, room), missing > room
}

// Surplus returns the names of the members to remove so that replicas members remain. Members without an instance come
// first, then members without a Node, then members without pods, then the others, in order of their cost. Protected
// members come last.
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

// rank is lower for members that are removed first.
func (m Member) rank() int {
	switch {
	case !m.Launched:
		return 0
	case !m.Joined:
		return 1
	case m.Protected:
		return 4
	case m.Pods == 0:
		return 2
	}
	return 3
}

// cost returns the cost of removing the member: the number of its pods, times the remaining share of its lifetime.
func (m Member) cost() float64 { return float64(m.Pods) * m.LifeLeft }
