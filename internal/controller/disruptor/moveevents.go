package disruptor

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// recordWait emits an event and logs what the move waits for, once for each reason.
func (m *Disruptor) recordWait(f *InFlightMove, step replacement.Step) {
	if m.logged[f.Mark.ID] == step.Reason {
		return
	}
	if m.logged == nil {
		m.logged = map[string]string{}
	}
	m.logged[f.Mark.ID] = step.Reason
	for _, c := range f.Leaving {
		m.Events.Emit(c, kubeclient.ReasonWaitingReadiness, f.Mark.Summary()+"; the move waits: "+step.Reason)
	}
	m.Log.Info("move waits", "move", f.Mark.ID, "cause", step.Reason, "newNodeClaims", f.claimNames())
}

// recordDone counts, logs and emits events about a completed move, with the saving at the prices of the launched
// instances.
func (m *Disruptor) recordDone(f *InFlightMove, now time.Time) {
	reason, took := string(f.Mark.Reason), now.Sub(f.Mark.Begun).Seconds()
	m.Metrics.Moves.Ended.WithLabelValues(reason, "done").Inc()
	m.Metrics.Took.WithLabelValues(reason).Observe(took)
	saving, known := f.saving(m.Types)
	if f.Mark.Saving > 0 && known && saving > 0 {
		m.Metrics.Saving.WithLabelValues("promised").Add(f.Mark.Saving)
		m.Metrics.Saving.WithLabelValues("realised").Add(saving.Dollars())
	}
	for _, c := range f.Leaving {
		nodestate.PodLoss{Claim: c, Reason: strings.ToLower(reason), Pods: f.Mark.Pods / max(f.Mark.Nodes, 1)}.Count(m.Metrics)
		m.Events.Emit(c, kubeclient.ReasonDisruptionTerminating, "Disrupting NodeClaim: "+f.Mark.Summary())
	}
	m.Log.Info("moved", "move", f.Mark.ID, "reason", reason, "Nodes", f.nodeNames(), "newNodeClaims", f.claimNames(), "pods", f.Mark.Pods,
		"promisedPerHour", f.Mark.Saving, "realisedPerHour", saving.Dollars(), "seconds", took)
}

// recordUndone emits an event and logs why a move was undone.
func (m *Disruptor) recordUndone(f *InFlightMove, why string) {
	m.Metrics.Moves.Ended.WithLabelValues(string(f.Mark.Reason), "undone").Inc()
	decision, kind, found := f.Mark.Decision()
	m.Metrics.Moves.Failed.WithLabelValues(decision, kind, found).Inc()
	for _, c := range f.Leaving {
		m.Events.Emit(c, kubeclient.ReasonMoveUndone, f.Mark.Summary()+"; the move was undone: "+why)
	}
	m.Log.Warn("undid a move", "move", f.Mark.ID, "reason", string(f.Mark.Reason), "cause", why, "Nodes", f.nodeNames(),
		"newNodeClaims", f.claimNames())
}

// recordStays logs how many nodes stay for each cause, when the counts change. candidates are the nodes that the scan
// considered, and moves are the moves that it found.
func (m *Disruptor) recordStays(stays []disruption.Stay, candidates []string, moves []consolidation.Move) {
	counts := map[disruption.Cause]int{}
	for _, s := range stays {
		counts[s.Cause]++
	}
	left := len(candidates)
	for i := range moves {
		left -= len(moves[i].Nodes)
	}
	if left > 0 {
		counts[disruption.Worth] = left
	}
	var text []string
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, string(cause)+": "+strconv.Itoa(counts[cause]))
	}
	if said := strings.Join(text, ", "); said != m.Search.logged {
		m.Search.logged = said
		m.Log.Info("searched all nodes for moves that save money", "moves", len(moves), "nodesThatStay", said)
	}
}
