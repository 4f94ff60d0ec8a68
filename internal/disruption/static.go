package disruption

import (
	"cmp"
	"slices"
)

// Member is a node of a pool that keeps a fixed number of them.
type Member struct {
	Name   string // of the claim
	Bought bool   // there is a machine
	Joined bool   // and its Node has joined
	Kept   bool   // somebody asks not to disrupt it, or a pod on it
	Pods   int    // that would need another place
	// Left is the share of its life that is left to it, 1 for one that never expires.
	Left float64
}

// Missing returns how many nodes are to be bought for a pool of active ones to have replicas. Limit bounds all of its
// nodes, those that are leaving too; nil for no bound. The second result says whether it is the limit that keeps some away.
func Missing(replicas, active, all int, limit *int) (missing int, isLimited bool) {
	missing = max(replicas-active, 0)
	if limit == nil {
		return missing, false
	}
	room := max(*limit-all, 0)
	return min(missing, room), missing > room
}

// Surplus returns the names of the members that go for replicas to be left, those first whom nobody misses: without a
// machine yet, or without a Node, then without pods, then with few pods that would soon have to move anyway. Those with a pod that asks not to be
// disrupted go last.
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
