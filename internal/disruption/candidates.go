package disruption

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Candidates returns the names of the nodes that may be disrupted for the reason, Underutilized or Drifted, before
// budgets are applied. stays are the other candidates, with their causes. Both are sorted by name. Nodes without a
// NodeClaim, a policy or a record are no candidates, nor are uninitialized, terminating or replaced nodes. For
// Underutilized, empty nodes (see Propose) and nodes of static pools are no candidates either. For Drifted, nodes that
// have not drifted are no candidates.
func Candidates(in Input, reason Reason) (nodes []string, stays []Stay) {
	expected := map[string]bool{}
	for _, p := range in.Plan.Placements {
		expected[p.Node] = true
	}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		if !in.isCandidate(n, reason) {
			continue
		}
		stay := in.whyStays(n, reason, expected[n.Name])
		if stay.Cause == "" {
			nodes = append(nodes, n.Name)
			continue
		}
		stay.Node = n.Name
		stays = append(stays, stay)
	}
	slices.Sort(nodes)
	slices.SortFunc(stays, func(a, b Stay) int { return cmp.Compare(a.Node, b.Node) })
	return nodes, stays
}

func (in Input) isCandidate(n *cluster.Node, reason Reason) bool {
	policy, ok := in.Policies[n.Pool]
	record, known := in.Records[n.Name]
	switch {
	case !ok, !known, n.Claim == "", !n.Initialized, n.Leaving, record.IsBeingRemoved:
		return false
	case reason == Drifted:
		return in.Drifted[n.Name] != ""
	}
	return !policy.Static && len(n.Pods) > 0
}

// whyStays returns why the candidate stays. Its Cause is empty if the candidate may be disrupted. expected is true if
// pending pods are planned on the node.
func (in Input) whyStays(n *cluster.Node, reason Reason, expected bool) Stay {
	policy, record := in.Policies[n.Pool], in.Records[n.Name]
	if stay := in.protection(policy, record, reason); stay.Cause != "" {
		return stay
	}
	if reason == Underutilized {
		if stay := in.savingObstacle(policy, record, expected); stay.Cause != "" {
			return stay
		}
	}
	oldEnough := n.Created.Add(policy.MinLifetime)
	switch {
	case in.Now.Before(oldEnough):
		return Stay{Cause: TooYoung, Detail: policy.MinLifetime.String(), Until: oldEnough}
	case record.Blocked != "" && (reason == Underutilized || !record.HasDrainDeadline):
		return Stay{Cause: Blocked, Detail: record.Blocked, Until: record.BlockedUntil}
	}
	return Stay{}
}

// protection returns what protects a node from disruption for the reason, Underutilized or Drifted. Its Cause is empty
// if nothing protects the node.
func (in Input) protection(policy Policy, r Record, reason Reason) Stay {
	problem, isForbidden := policy.Forbidden(reason)
	switch {
	case policy.Paused != "":
		return Stay{Cause: Paused, Detail: policy.Paused, Until: policy.PausedUntil}
	case isForbidden:
		return Stay{Cause: Invalid, Detail: problem.String()}
	case r.Keep != "":
		return Stay{Cause: DoNotDisrupt, Detail: r.Keep}
	case !r.Ready:
		return Stay{Cause: Unready}
	case in.Now.Before(r.HeldUntil):
		return Stay{Cause: Held, Detail: r.HeldCause, Until: r.HeldUntil}
	}
	return Stay{}
}

// savingObstacle returns what keeps a node from being disrupted to save money. Its Cause is empty if there is no
// obstacle.
func (in Input) savingObstacle(policy Policy, r Record, expected bool) Stay {
	switch {
	case policy.After == nil:
		return Stay{Cause: Never}
	case !policy.Method.Allows(Underutilized):
		return Stay{Cause: OnlyEmpty}
	case expected:
		return Stay{Cause: Expected}
	}
	if due := r.LastPodEvent.Add(*policy.After); in.Now.Before(due) {
		return Stay{Cause: TooSoon, Detail: policy.After.String(), Until: due}
	}
	return Stay{}
}

// Grant applies the budgets to groups of nodes that should be disrupted together, the best group first. granted
// are the nodes that the budgets of all their pools allow at once; stays are the other nodes. Both are sorted by name.
// rooms are the rooms before the grant. Groups that fit as a whole are granted first. Nodes of the other groups use up
// the rest of the budgets, in order.
func Grant(in Input, reason Reason, groups [][]string) (granted []string, stays []Stay, rooms []Room) {
	g := grants{pools: map[string]string{}, left: map[string]int{}}
	for i := range in.Snapshot.Nodes {
		g.pools[in.Snapshot.Nodes[i].Name] = in.Snapshot.Nodes[i].Pool
	}
	byPool := map[string]Room{}
	for _, pool := range in.Snapshot.Pools {
		if policy, ok := in.Policies[pool.Name]; ok {
			room := in.room(pool.Name, policy, reason)
			g.left[pool.Name], byPool[pool.Name] = room.Nodes, room
			rooms = append(rooms, room)
		}
	}
	var later []string
	for _, group := range groups {
		if g.fits(group) {
			granted = append(granted, g.take(group)...)
		} else {
			later = append(later, group...)
		}
	}
	for _, node := range later {
		if g.fits([]string{node}) {
			granted = append(granted, g.take([]string{node})...)
			continue
		}
		room := byPool[g.pools[node]]
		stays = append(stays, Stay{Node: node, Cause: BudgetExhausted, Detail: room.Budget, Until: room.Until})
	}
	slices.Sort(granted)
	slices.SortFunc(stays, func(a, b Stay) int { return cmp.Compare(a.Node, b.Node) })
	return granted, stays, rooms
}

// grants has the budgets that remain while Grant runs.
type grants struct {
	pools map[string]string // name of the pool, by node
	left  map[string]int    // number of nodes that may still be disrupted, by pool
}

func (g grants) fits(nodes []string) bool {
	need := map[string]int{}
	for _, node := range nodes {
		pool := g.pools[node]
		if need[pool]++; need[pool] > g.left[pool] {
			return false
		}
	}
	return true
}

// take subtracts the nodes from the remaining budgets, and returns them.
func (g grants) take(nodes []string) []string {
	for _, node := range nodes {
		g.left[g.pools[node]]--
	}
	return nodes
}
