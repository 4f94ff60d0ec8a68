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

// recordWait emits an event and logs what the move waits for, unless the reason is the same as at the last call.
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
	m.Log.Info("move waits", "move", f.Mark.ID, "cause", step.Reason, "newNodeClaims", f.replacementNames())
}

// recordDone counts and logs a completed move, and emits events about it. It records the promised saving, and the
// realised saving, which is computed from the prices of the launched instances.
func (m *Disruptor) recordDone(f *InFlightMove, now time.Time) {
	reason, took := string(f.Mark.Reason), now.Sub(f.Mark.Started).Seconds()
	m.Metrics.Moves.Ended.WithLabelValues(reason, "done").Inc()
	m.Metrics.MoveDuration.WithLabelValues(reason).Observe(took)
	saving, known := f.saving(m.Types)
	if f.Mark.Saving > 0 && known && saving > 0 {
		m.Metrics.Saving.WithLabelValues("promised").Add(f.Mark.Saving)
		m.Metrics.Saving.WithLabelValues("realised").Add(saving.Dollars())
	}
	for _, c := range f.Leaving {
		nodestate.PodLoss{Claim: c, Reason: strings.ToLower(reason), Pods: f.Mark.Pods / max(f.Mark.Nodes, 1)}.Count(m.Metrics)
		m.Events.Emit(c, kubeclient.ReasonDisruptionTerminating, "Disrupting NodeClaim: "+f.Mark.Summary())
	}
	m.Log.Info("moved", "move", f.Mark.ID, "reason", reason, "Nodes", f.nodeNames(), "newNodeClaims", f.replacementNames(),
		"pods", f.Mark.Pods,
		"promisedPerHour", f.Mark.Saving, "realisedPerHour", saving.Dollars(), "seconds", took)
}

func (m *Disruptor) recordUndone(f *InFlightMove, why string) {
	m.Metrics.Moves.Ended.WithLabelValues(string(f.Mark.Reason), "undone").Inc()
	decision, reason, consolidationType := f.Mark.Decision()
	m.Metrics.Moves.Failed.WithLabelValues(decision, reason, consolidationType).Inc()
	for _, c := range f.Leaving {
		m.Events.Emit(c, kubeclient.ReasonMoveUndone, f.Mark.Summary()+"; the move was undone: "+why)
	}
	m.Log.Warn("undid a move", "move", f.Mark.ID, "reason", string(f.Mark.Reason), "cause", why, "Nodes", f.nodeNames(),
		"newNodeClaims", f.replacementNames())
}

// recordStays logs how many nodes stay for each cause, when the counts change. candidates are the nodes that the scan
// considered, and moves are the moves that it found.
func (m *Disruptor) recordStays(stays []disruption.Stay, candidates []string, moves []consolidation.Move) {
	counts := map[disruption.Cause]int{}
	for _, s := range stays {
		counts[s.Cause]++
	}
	notMoved := len(candidates)
	for i := range moves {
		notMoved -= len(moves[i].Nodes)
	}
	if notMoved > 0 {
		counts[disruption.WorthItsPrice] = notMoved
	}
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, string(cause)+": "+strconv.Itoa(counts[cause]))
	}
	if text := strings.Join(parts, ", "); text != m.Scans.logged {
		m.Scans.logged = text
		m.Log.Info("searched all nodes for moves that save money", "moves", len(moves), "nodesThatStay", text)
	}
}
