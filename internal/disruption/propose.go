package disruption

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Propose returns the empty nodes to remove now, in one move for each pool, and the empty nodes that stay. A move
// contains as many nodes as the budgets allow, those that have been empty longest first.
func Propose(in Input) Proposal {
	var out Proposal
	expected := map[string]bool{}
	for _, p := range in.Plan.Placements {
		expected[p.Node] = true
	}
	candidates := map[string][]cluster.Node{}
	for _, n := range in.Snapshot.Nodes {
		if !isEmpty(n) || in.Records[n.Name].IsBeingRemoved {
			continue
		}
		if stay, ok := in.whyEmptyStays(n, expected[n.Name]); ok {
			out.Stays = append(out.Stays, stay)
			continue
		}
		if _, known := in.Records[n.Name]; known && n.Pool != "" {
			candidates[n.Pool] = append(candidates[n.Pool], n)
		}
	}
	for _, pool := range in.Snapshot.Pools {
		policy, ok := in.Policies[pool.Name]
		if !ok || policy.Static {
			continue
		}
		room := in.room(pool.Name, policy, Empty)
		out.Rooms = append(out.Rooms, room)
		move, stays := in.splitByRoom(room, candidates[pool.Name])
		if len(move.Nodes) > 0 {
			out.Moves = append(out.Moves, move)
		}
		out.Stays = append(out.Stays, stays...)
	}
	slices.SortFunc(out.Stays, func(a, b Stay) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// RemovableEmpty returns the empty nodes that are removed now, or as soon as budgets allow.
func (p Proposal) RemovableEmpty() []string {
	var out []string
	for _, m := range p.Moves {
		out = append(out, m.Nodes...)
	}
	for _, s := range p.Stays {
		if s.Cause == BudgetExhausted {
			out = append(out, s.Node)
		}
	}
	return out
}

// WithoutRemovableEmpty returns the snapshot in which the nodes of Proposal.RemovableEmpty are terminating, so that
// other moves place no pods on them.
func WithoutRemovableEmpty(in Input) cluster.Snapshot {
	removable := map[string]bool{}
	for _, name := range Propose(in).RemovableEmpty() {
		removable[name] = true
	}
	out := in.Snapshot
	out.Nodes = slices.Clone(out.Nodes)
	for i := range out.Nodes {
		out.Nodes[i].Leaving = out.Nodes[i].Leaving || removable[out.Nodes[i].Name]
	}
	return out
}

// isEmpty reports whether the node has a NodeClaim, is initialized, is not terminating, and has no pod that would need
// another node.
func isEmpty(n cluster.Node) bool {
	return n.Claim != "" && n.Initialized && !n.Leaving && len(n.Pods) == 0
}

// whyEmptyStays returns why an empty node is not removed now, apart from budgets. It returns false if nothing keeps the
// node, and for nodes that Propose ignores: those without policy or record, and those of a static pool.
func (in Input) whyEmptyStays(n cluster.Node, expected bool) (Stay, bool) {
	policy, ok := in.Policies[n.Pool]
	record, known := in.Records[n.Name]
	if !ok || !known || policy.Static {
		return Stay{}, false
	}
	problem, isForbidden := policy.Forbidden(Empty)
	switch {
	case policy.Paused != "":
		return Stay{Node: n.Name, Cause: Paused, Detail: policy.Paused, Until: policy.PausedUntil}, true
	case isForbidden:
		return Stay{Node: n.Name, Cause: Invalid, Detail: problem.String()}, true
	case expected:
		return Stay{Node: n.Name, Cause: Expected}, true
	case record.Keep != "":
		return Stay{Node: n.Name, Cause: DoNotDisrupt, Detail: record.Keep}, true
	case record.Blocked != "":
		return Stay{Node: n.Name, Cause: Blocked, Detail: record.Blocked, Until: record.BlockedUntil}, true
	case policy.After == nil:
		return Stay{Node: n.Name, Cause: Never}, true
	case in.Now.Before(record.HeldUntil):
		return Stay{Node: n.Name, Cause: Held, Detail: record.HeldCause, Until: record.HeldUntil}, true
	}
	if due := record.LastPodEvent.Add(*policy.After); in.Now.Before(due) {
		return Stay{Node: n.Name, Cause: TooSoon, Detail: policy.After.String(), Until: due}, true
	}
	return Stay{}, false
}

// splitByRoom returns the move of as many candidates as the room allows, those that have been empty longest first, and
// the others as stays.
func (in Input) splitByRoom(room Room, candidates []cluster.Node) (Move, []Stay) {
	slices.SortFunc(candidates, func(a, b cluster.Node) int {
		return cmp.Or(in.Records[a.Name].LastPodEvent.Compare(in.Records[b.Name].LastPodEvent), cmp.Compare(a.Name, b.Name))
	})
	move := Move{Reason: room.Reason, Pool: room.Pool}
	var stays []Stay
	for i, n := range candidates {
		if i >= room.Nodes {
			stays = append(stays, Stay{Node: n.Name, Cause: BudgetExhausted, Detail: room.Budget, Until: room.Until})
			continue
		}
		move.Nodes = append(move.Nodes, n.Name)
	}
	slices.Sort(move.Nodes)
	return move, stays
}

// room returns how many more nodes of the pool may be disrupted for the reason.
func (in Input) room(pool string, policy Policy, reason Reason) Room {
	total, unavailable := 0, 0
	for _, n := range in.Snapshot.Nodes {
		if n.Pool != pool || n.Claim == "" || !n.Initialized {
			continue
		}
		total++
		if r := in.Records[n.Name]; n.Leaving || r.IsBeingRemoved || !r.Ready {
			unavailable++
		}
	}
	room := policy.Room(reason, total, unavailable, in.Now)
	room.Pool, room.Unavailable = pool, unavailable
	return room
}
