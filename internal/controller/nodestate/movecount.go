package nodestate

import (
	"maps"
	"slices"
	"strings"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Decision returns the labels of Karpenter's metrics for the move. kind is the consolidation type; empty if the reason
// is not consolidation.
func (m MoveMark) Decision() (decision, reason, kind string) {
	decision, reason = "replace", strings.ToLower(string(m.Reason))
	if m.Claims == 0 {
		decision = "delete"
	}
	switch m.Reason {
	case disruption.Empty:
		kind = KindEmpty
	case disruption.Underutilized:
		kind = kindOf(m.Nodes)
	case disruption.Drifted, disruption.Expired:
	}
	return decision, reason, kind
}

// CountStarted counts the move as started. leaving are the claims of the nodes that leave.
func (m MoveMark) CountStarted(to *metrics.Metrics, leaving []*karpv1.NodeClaim) {
	decision, reason, kind := m.Decision()
	to.Decisions.WithLabelValues(decision, reason, kind).Inc()
	pools := map[string]bool{}
	for _, c := range leaving {
		pools[c.Labels[karpv1.LabelNodePool]] = true
	}
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		to.PoolDecisions.WithLabelValues(pool, decision, reason, kind).Inc()
	}
}

// The consolidation types in Karpenter's metrics.
const (
	KindEmpty  = "empty"
	KindSingle = "single"
	KindMulti  = "multi"
)

func kindOf(nodes int) string {
	if nodes > 1 {
		return KindMulti
	}
	return KindSingle
}

// CountWeighed counts the moves that a scan approved and rejected, once for each NodePool that has a node in the move.
func CountWeighed(to *metrics.Metrics, in disruption.Input, found consolidation.Result) {
	nodesByName := NodesByName(in.Snapshot)
	count := func(decision string, moves []consolidation.Move) {
		for i := range moves {
			pools := map[string]bool{}
			for _, name := range moves[i].Nodes {
				pools[nodesByName[name].Pool] = true
			}
			for pool := range pools {
				labels := []string{decision, pool, string(in.Policies[pool].Method)}
				to.Weighed.WithLabelValues(labels...).Inc()
				if moves[i].Worth > 0 {
					to.Score.WithLabelValues(labels...).Observe(moves[i].Worth)
				}
			}
		}
	}
	count("approved", found.Moves)
	count("rejected", found.Declined)
}

// CountInvalid counts nodes of the moves that a scan found and revalidation did not confirm. If a node of a move is no
// longer a candidate, all nodes of the move count. Otherwise the nodes that the budgets allow to disrupt (granted)
// count, except those in a confirmed move.
func CountInvalid(to *metrics.Metrics, found []consolidation.Move, candidates map[string]bool, granted []string,
	confirmed []consolidation.Move) {
	isConfirmed := NodesOfMoves(confirmed)
	for i := range found {
		nodes := found[i].Nodes
		if slices.ContainsFunc(nodes, func(name string) bool { return !candidates[name] }) {
			to.Invalid.WithLabelValues(kindOf(len(nodes))).Add(float64(len(nodes)))
			continue
		}
		for _, name := range nodes {
			if slices.Contains(granted, name) && !isConfirmed[name] {
				to.Invalid.WithLabelValues(kindOf(len(nodes))).Inc()
			}
		}
	}
}

// CountRooms sets the metrics of how many nodes of each pool may be disrupted, and how many already count against its
// budgets.
func CountRooms(to *metrics.Metrics, rooms []disruption.Room) {
	for _, room := range rooms {
		to.Allowed.WithLabelValues(room.Pool, string(room.Reason)).Set(float64(room.Nodes))
		to.Taken.WithLabelValues(room.Pool, string(room.Reason)).Set(float64(room.Unavailable))
	}
}

// CountEvaluation records how long the search for candidates took since started.
func CountEvaluation(to *metrics.Metrics, reason disruption.Reason, kind string, started time.Time) {
	to.Evaluation.WithLabelValues(strings.ToLower(string(reason)), kind).Observe(time.Since(started).Seconds())
}

// CountEligible sets the metric of how many nodes are candidates for a reason.
func CountEligible(to *metrics.Metrics, reason disruption.Reason, nodes int) {
	to.Eligible.WithLabelValues(strings.ToLower(string(reason))).Set(float64(nodes))
}

// NodesByName returns the nodes of a snapshot by name.
func NodesByName(s cluster.Snapshot) map[string]*cluster.Node {
	out := make(map[string]*cluster.Node, len(s.Nodes))
	for i := range s.Nodes {
		out[s.Nodes[i].Name] = &s.Nodes[i]
	}
	return out
}

// NodesOfMoves returns the set of the names of the nodes that the moves remove.
func NodesOfMoves(moves []consolidation.Move) map[string]bool {
	var names []string
	for i := range moves {
		names = append(names, moves[i].Nodes...)
	}
	return loop.SetOf(names)
}
