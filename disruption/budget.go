package disruption

import (
	"slices"
	"strconv"
	"strings"
)

// Room returns how many more of a pool's total nodes may leave for the reason when out of them are leaving or broken
// already, and the budget that says so. It is never negative, and without a budget all that are left.
func (p Policy) Room(reason Reason, total, out int) (room int, tightest string) {
	room = total
	for _, b := range p.Budgets {
		if len(b.Reasons) > 0 && !slices.Contains(b.Reasons, reason) {
			continue
		}
		if allowed := b.allowed(total) - out; allowed < room {
			room, tightest = allowed, b.Nodes
		}
	}
	return max(room, 0), tightest
}

// allowed returns how many of total nodes the budget lets go at once. A budget that cannot be read allows none.
func (b Budget) allowed(total int) int {
	if percent, ok := strings.CutSuffix(b.Nodes, "%"); ok {
		n, err := strconv.Atoi(percent)
		if err != nil {
			return 0
		}
		return (total*n + 99) / 100
	}
	n, err := strconv.Atoi(b.Nodes)
	if err != nil {
		return 0
	}
	return n
}
