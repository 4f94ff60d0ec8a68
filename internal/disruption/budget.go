package disruption

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/disruption/cron"
)

// Budget limits how many nodes of a pool may be disrupted at once.
type Budget struct {
	Reasons []Reason // reasons that the budget applies to; none: all reasons
	Nodes   string   // "3", or "10%" of the pool's nodes, rounded up
	// Schedule is when the budget becomes active, and Open is how long it then stays active. A budget with a nil
	// Schedule is always active.
	Schedule *cron.Schedule
	Open     time.Duration
	// Line is the schedule as written, for display.
	Line string
	// Unreadable is the error of the schedule or the duration. Such a budget never allows a node.
	Unreadable string
}

// Room is how many more nodes of a pool may be disrupted for a reason.
type Room struct {
	Pool        string // name of the NodePool
	Reason      Reason // the room is for disruption with this reason, because a budget may apply to some reasons only
	Nodes       int    // number of further nodes; never negative
	Unavailable int    // nodes of the pool that count against its budgets: terminating, being replaced, or not ready
	// Budget is the limiting budget ("10%", `0 after "0 9 * * mon-fri" for 8h0m0s`); empty if no budget limits Nodes.
	Budget string
	// Until is when Nodes may change: when a budget for the reason starts or ends. With no room, it is when the last
	// budget without room ends. Zero if the passing of time changes nothing.
	Until time.Time
}

// Room returns how many more nodes of a pool may be disrupted at now. total is the number of the pool's nodes. Without
// an active budget, all nodes that are not unavailable may be disrupted. Room leaves Pool and Unavailable empty.
func (p Policy) Room(reason Reason, total, unavailable int, now time.Time) Room {
	room := Room{Reason: reason, Nodes: max(total-unavailable, 0)}
	var full []time.Time // for each budget without room: when it ends; zero: never
	for _, b := range p.Budgets {
		if len(b.Reasons) > 0 && !slices.Contains(b.Reasons, reason) {
			continue
		}
		active, until := b.active(now)
		if !until.IsZero() && (room.Until.IsZero() || until.Before(room.Until)) {
			room.Until = until
		}
		if active && b.allowed(total) <= unavailable {
			full = append(full, until)
		}
		allowed := max(b.allowed(total)-unavailable, 0)
		// A budget for exactly the remaining nodes is the limit too.
		if active && (allowed < room.Nodes || allowed == room.Nodes && room.Budget == "") {
			room.Nodes, room.Budget = allowed, b.String()
		}
	}
	if len(full) > 0 {
		room.Until = latest(full)
	}
	return room
}

// latest returns the last of the times; zero stands for never.
func latest(times []time.Time) time.Time {
	last := times[0]
	for _, at := range times {
		if at.IsZero() {
			return at
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// active reports whether the budget is active at now, and when this changes; zero if it never changes.
func (b Budget) active(now time.Time) (bool, time.Time) {
	if b.Schedule == nil || b.Unreadable != "" {
		return true, time.Time{}
	}
	return b.Schedule.Active(b.Open, now)
}

// allowed returns how many of total nodes may be unavailable at once. An unreadable budget allows none.
func (b Budget) allowed(total int) int {
	if b.Unreadable != "" {
		return 0
	}
	n, isShare, err := ParseNodes(b.Nodes)
	switch {
	case err != nil:
		return 0
	case isShare:
		return (total*n + 99) / 100
	}
	return n
}

// ParseNodes parses a number of nodes, "3", or a percentage of nodes, "10%". isShare is true for a percentage.
func ParseNodes(text string) (n int, isShare bool, err error) {
	digits, isShare := strings.CutSuffix(text, "%")
	n, err = strconv.Atoi(digits)
	switch {
	case err != nil || digits[0] == '+':
		return 0, isShare, fmt.Errorf("%q is neither a number of nodes nor a percentage", text)
	case n < 0:
		return 0, isShare, fmt.Errorf("%q is below 0", text)
	case isShare && n > 100:
		return 0, isShare, fmt.Errorf("%q is more than 100%%", text)
	}
	return n, isShare, nil
}

// String formats the budget: "10%", `0 after "0 9 * * mon-fri" for 8h0m0s`, or the error of a budget that cannot be
// parsed.
func (b Budget) String() string {
	switch {
	case b.Unreadable != "":
		return strconv.Quote(b.Nodes) + ", which cannot be read: " + b.Unreadable
	case b.Schedule != nil:
		text := b.Nodes + " after " + strconv.Quote(b.Line) + " for " + b.Open.String()
		if b.Schedule.IsAlways(b.Open) {
			text += ", which never ends"
		}
		return text
	}
	return b.Nodes
}
