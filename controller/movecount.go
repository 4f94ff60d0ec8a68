package controller

import (
	"maps"
	"slices"
	"strings"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/disruption"
	"github.com/joiner-sh/joiner/metrics"
)

// decision is the move in the words of Karpenter's metrics: what becomes of its nodes, why, and how it was found.
func (m moveMark) decision() (decision, reason, kind string) {
	decision, reason = "replace", strings.ToLower(string(m.Reason))
	if m.Claims == 0 {
		decision = "delete"
	}
	switch {
	case m.Reason == disruption.Empty:
		kind = "empty"
	case m.Reason == disruption.Underutilized && m.Nodes > 1:
		kind = "multi"
	case m.Reason == disruption.Underutilized:
		kind = "single"
	}
	return decision, reason, kind
}

// count counts a move that is begun.
func (m moveMark) count(to *metrics.Metrics, leaving []*karpv1.NodeClaim) {
	decision, reason, kind := m.decision()
	to.Decisions.WithLabelValues(decision, reason, kind).Inc()
	pools := map[string]bool{}
	for _, c := range leaving {
		pools[c.Labels[karpv1.LabelNodePool]] = true
	}
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		to.PoolDecisions.WithLabelValues(pool, decision, reason, kind).Inc()
	}
}

// countEligible tells how many nodes may go for a reason.
func countEligible(to *metrics.Metrics, reason disruption.Reason, nodes int) {
	to.Eligible.WithLabelValues(strings.ToLower(string(reason))).Set(float64(nodes))
}
