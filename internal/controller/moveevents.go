package controller

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
	"github.com/joiner-sh/joiner/internal/kube"
)

// tellWait says what a move waits for, once.
func (m *Moves) tellWait(f *flight, step replacement.Step) {
	if m.told[f.mark.ID] == step.Reason {
		return
	}
	if m.told == nil {
		m.told = map[string]string{}
	}
	m.told[f.mark.ID] = step.Reason
	for _, c := range f.leaving {
		m.Tell.Tell(c, kube.ReasonWaitingReadiness, f.mark.said()+"; it waits: "+step.Reason)
	}
	m.Log.Info("move waits", "move", f.mark.ID, "cause", step.Reason, "newNodeClaims", f.claimNames())
}

// tellDone counts a move that was done, with what it turned out to save.
func (m *Moves) tellDone(f *flight, now time.Time) {
	reason, took := string(f.mark.Reason), now.Sub(f.mark.Begun).Seconds()
	m.Metrics.Moves.Ended.WithLabelValues(reason, "done").Inc()
	m.Metrics.Took.WithLabelValues(reason).Observe(took)
	saving, known := f.saving(m.Types)
	if f.mark.Saving > 0 && known && saving > 0 {
		m.Metrics.Saving.WithLabelValues("promised").Add(f.mark.Saving)
		m.Metrics.Saving.WithLabelValues("realised").Add(saving.Dollars())
	}
	for _, c := range f.leaving {
		loss{claim: c, reason: strings.ToLower(reason), pods: f.mark.Pods / max(f.mark.Nodes, 1)}.count(m.Metrics)
		m.Tell.Tell(c, kube.ReasonDisruptionTerminating, "Disrupting NodeClaim: "+f.mark.said())
	}
	m.Log.Info("moved", "move", f.mark.ID, "reason", reason, "Nodes", f.nodeNames(), "newNodeClaims", f.claimNames(), "pods", f.mark.Pods,
		"promisedPerHour", f.mark.Saving, "realisedPerHour", saving.Dollars(), "seconds", took)
}

// tellUndone says why a move came to nothing.
func (m *Moves) tellUndone(f *flight, why string) {
	m.Metrics.Moves.Ended.WithLabelValues(string(f.mark.Reason), "undone").Inc()
	decision, kind, found := f.mark.decision()
	m.Metrics.Moves.Failed.WithLabelValues(decision, kind, found).Inc()
	for _, c := range f.leaving {
		m.Tell.Tell(c, kube.ReasonMoveUndone, f.mark.said()+"; it was undone: "+why)
	}
	m.Log.Warn("undid a move", "move", f.mark.ID, "reason", string(f.mark.Reason), "cause", why, "Nodes", f.nodeNames(), "newNodeClaims", f.claimNames())
}

// tellStays says how many nodes stay for which reason, when that changes: candidates are those that were looked at, and moves
// what was found.
func (m *Moves) tellStays(stays []disruption.Stay, candidates []string, moves []consolidation.Move) {
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
	if said := strings.Join(text, ", "); said != m.search.told {
		m.search.told = said
		m.Log.Info("looked at all nodes for moves that save money", "moves", len(moves), "nodesThatStay", said)
	}
}
