package disruptor

import (
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/disruption"
)

// obsoleteReason returns why the move must be undone; empty if the move may continue. A move must be undone in three
// cases:
//   - The user's settings no longer allow the move.
//   - The move replaces drifted nodes, and one of them must no longer be replaced; see driftEnded.
//   - The move was started to save money, and would no longer save any.
func (m *Disruptor) obsoleteReason(f *InFlightMove, intent userIntent) string {
	for _, c := range f.Leaving {
		if c.DeletionTimestamp != nil {
			continue
		}
		why := intent.forbiddenBy(c, f.Mark.Reason)
		if why == "" && f.Mark.Reason == disruption.Drifted {
			why = intent.driftEnded(m.Drift, c)
		}
		if why != "" {
			return why
		}
	}
	if saving, known := f.saving(m.Types); f.Mark.Reason == disruption.Underutilized && known && saving <= 0 {
		return "the move would save nothing any more: prices have changed"
	}
	return ""
}

// driftEnded returns why the claim's node must no longer be replaced for drift; empty if it must still be replaced.
func (u userIntent) driftEnded(drift *driftcheck.Reconciler, c *karpv1.NodeClaim) string {
	pool := c.Labels[karpv1.LabelNodePool]
	switch held := drift.HoldReason(pool); {
	case u.policies[pool].ObserveDrift:
		return "NodePool " + pool + " only observes drift now"
	case held != "":
		return held
	case !c.StatusConditions().IsTrue(karpv1.ConditionDrifted):
		return "node " + c.Status.NodeName + " is no longer drifted"
	}
	return ""
}

// userIntent holds the user's current settings that can stop a move in flight.
type userIntent struct {
	policies map[string]disruption.Policy // disruption policies by pool
	kept     map[string]string            // by Node name: the annotation that forbids its disruption
}

// forbiddenBy returns which setting forbids disrupting the claim's node for the reason; empty if no setting does.
func (u userIntent) forbiddenBy(c *karpv1.NodeClaim, reason disruption.Reason) string {
	pool := c.Labels[karpv1.LabelNodePool]
	p, hasPool := u.policies[pool]
	problem, isForbidden := p.Forbidden(reason)
	switch kept := u.kept[c.Status.NodeName]; {
	case p.Paused != "":
		return "NodePool " + pool + " was paused: " + p.Paused
	case kept != "":
		return "node " + c.Status.NodeName + " is kept by " + kept
	case isForbidden:
		return "NodePool " + pool + " no longer allows the move: " + problem.String()
	case hasPool && reason == disruption.Underutilized && (p.After == nil || !p.Method.Allows(reason)):
		// consolidateAfter is Never, or consolidationPolicy is WhenEmpty
		return "NodePool " + pool + " no longer allows disruption to save money"
	}
	return ""
}
