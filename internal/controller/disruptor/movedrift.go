package disruptor

import (
	"context"
	"maps"
	"slices"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/provisioner"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

func (m *Disruptor) replaceDrifted(ctx context.Context, s *DisruptionInput, now time.Time) error {
	started := time.Now()
	moves := m.driftMoves(ctx, s, now)
	nodestate.CountEvaluation(m.Metrics, disruption.Drifted, "", started)
	return m.StartAll(ctx, s, disruption.Drifted, moves, now)
}

// driftMoves returns the moves that replace drifted nodes now. Moves of static pools need no plan: driftMoves starts
// them itself and does not return them.
func (m *Disruptor) driftMoves(ctx context.Context, s *DisruptionInput, now time.Time) []consolidation.Move {
	granted, notGranted := m.grantDrifted(s)
	if len(granted) == 0 {
		return nil
	}
	granted = m.replaceStatic(ctx, s, granted, now)
	moves, later := m.completableMoves(s, consolidation.Replace(m.ConsolidationInput(s, granted), granted), now)
	m.Stays.SetReasons(stayDriftBudget, slices.Concat(notGranted, later)...)
	s.release(m.Lock, granted, moves)
	return moves
}

// grantDrifted returns the drifted nodes to replace now, and reserves their share of the disruption budgets. notGranted
// has why candidates stay: their budget is used up, or their pods were moved too often.
func (m *Disruptor) grantDrifted(s *DisruptionInput) (granted []string, notGranted []disruption.Stay) {
	m.Lock.Enter()
	defer m.Lock.Leave()
	markLeaving(s.In, s.Flights, s.Claims, m.Lock)
	nodes, stays := disruption.Candidates(s.In, disruption.Drifted)
	nodes, movedTooOften := m.withinMoveLimits(s, disruption.Drifted, nodes, false) // each node alone
	nodestate.CountEligible(m.Metrics, disruption.Drifted, len(nodes))
	nodes, later := m.allowedByWaves(s, nodes)
	m.Stays.SetReasons(stayDrifted, slices.Concat(stays, movedTooOften, later)...)
	m.Stays.SetReasons(stayDriftBudget) // removes the reasons of the last scan
	if len(nodes) == 0 {
		_, _, rooms := disruption.Grant(s.In, disruption.Drifted, nil) // grants nothing, returns what the budgets allow
		nodestate.CountRooms(m.Metrics, rooms)
		return nil, nil
	}
	s.oldestFirst(nodes)
	sets := make([][]string, len(nodes))
	for i, n := range nodes {
		sets[i] = []string{n}
	}
	granted, waiting, rooms := disruption.Grant(s.In, disruption.Drifted, sets)
	nodestate.CountRooms(m.Metrics, rooms)
	granted, movedTooOften = m.withinMoveLimits(s, disruption.Drifted, granted, true) // all together
	m.Stays.SetReasons(stayDriftBudget, slices.Concat(waiting, movedTooOften)...)
	s.reserve(m.Lock, granted)
	return granted, slices.Concat(waiting, movedTooOften)
}

// completableMoves returns the moves that can be completed now, and why other nodes stay. A node stays until the next
// scan in two cases:
//   - One of its pods fits on no node while the launches of its pool are on hold.
//   - One of its pods would go to a node that is not ready yet, such as the replacement of an earlier move.
//
// If launches are not on hold, a node with a pod that fits on no node is excluded from moves for a while.
func (m *Disruptor) completableMoves(s *DisruptionInput, found consolidation.Result,
	now time.Time) (moves []consolidation.Move, later []disruption.Stay) {
	nodeByName := nodestate.NodesByName(s.In.Snapshot)
	for _, stuck := range found.Stuck {
		n := nodeByName[stuck.Node]
		if n == nil {
			continue
		}
		if until, why := m.LaunchBackoff.Held(now, n.Pool); !until.IsZero() {
			later = append(later, disruption.Stay{
				Node:   n.Name,
				Cause:  disruption.InWaves,
				Until:  until,
				Detail: "launches for its NodePool are on hold: " + why,
			})
			continue
		}
		m.holdStuck(s.Claims[n.Claim], provisioner.Explain(stuck.Refusal), now)
	}
	for _, move := range found.Moves {
		unready := slices.IndexFunc(move.Placements, func(p packing.Placement) bool {
			return nodeByName[p.Node] == nil || !nodeByName[p.Node].Initialized
		})
		if unready < 0 {
			moves = append(moves, move)
			continue
		}
		p := move.Placements[unready]
		for _, name := range move.Nodes {
			later = append(later, disruption.Stay{Node: name, Cause: disruption.InWaves,
				Detail: "pod " + p.Pod + " would move to node " + p.Node + ", which is not ready yet"})
		}
	}
	return moves, later
}

// allowedByWaves returns the drifted nodes that the waves of their pools allow to replace now, and why the other nodes
// stay. The first wave of a pool starts after a few canary nodes were replaced.
func (m *Disruptor) allowedByWaves(s *DisruptionInput, nodes []string) (allowed []string, later []disruption.Stay) {
	if m.Drift == nil {
		return nodes, nil
	}
	moving := map[string][]string{}
	for _, f := range s.Flights {
		for _, c := range f.Leaving {
			if pool := c.Labels[karpv1.LabelNodePool]; f.Mark.Reason == disruption.Drifted {
				moving[pool] = append(moving[pool], c.Status.NodeName)
			}
		}
	}
	nodeByName, ofPool := nodestate.NodesByName(s.In.Snapshot), map[string][]string{}
	for _, name := range nodes {
		ofPool[nodeByName[name].Pool] = append(ofPool[nodeByName[name].Pool], name)
	}
	for _, pool := range slices.Sorted(maps.Keys(ofPool)) {
		next, stays := m.Drift.Waves(pool, ofPool[pool], moving[pool])
		allowed = append(allowed, next...)
		for _, name := range slices.Sorted(maps.Keys(stays)) {
			later = append(later, disruption.Stay{Node: name, Cause: disruption.InWaves, Detail: stays[name]})
		}
	}
	return allowed, later
}

func (s *DisruptionInput) oldestFirst(nodes []string) {
	since := map[string]time.Time{}
	nodeByName := nodestate.NodesByName(s.In.Snapshot)
	for _, name := range nodes {
		if c, ok := s.Claims[nodeByName[name].Claim].StatusConditions().Find(karpv1.ConditionDrifted); ok {
			since[name] = c.LastTransitionTime.Time
		}
	}
	slices.SortStableFunc(nodes, func(a, b string) int { return since[a].Compare(since[b]) })
}
