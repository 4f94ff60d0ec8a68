package controller

import (
	"strings"
	"time"

	"github.com/joiner-sh/joiner/kube"
	"github.com/joiner-sh/joiner/move"
)

// tellWait says what a move waits for, once.
func (m *Moves) tellWait(f *flight, step move.Step) {
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
	for _, c := range f.leaving {
		m.Tell.Tell(c, kube.ReasonMoveUndone, f.mark.said()+"; it was undone: "+why)
	}
	m.Log.Warn("undid a move", "move", f.mark.ID, "reason", string(f.mark.Reason), "cause", why, "Nodes", f.nodeNames(), "newNodeClaims", f.claimNames())
}
