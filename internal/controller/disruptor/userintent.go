package disruptor

import (
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/disruption"
)

// off returns why the user no longer wants the move; empty if the move is still wanted. A user can object until the replacement is ready.
func (m *Disruptor) off(f *InFlightMove, w userIntent) string {
	for _, c := range f.Leaving {
		if c.DeletionTimestamp != nil {
			continue
		}
		why := w.against(c, f.Mark.Reason)
		if why == "" && f.Mark.Reason == disruption.Drifted {
			why = w.driftsNoMore(m.Drift, c)
		}
		if why != "" {
			return why
		}
	}
	if saving, known := f.saving(m.Types); f.Mark.Reason == disruption.Underutilized && known && saving <= 0 {
		return "it would save nothing any more: prices have changed"
	}
	return ""
}

// driftsNoMore returns why the claim's node must no longer be replaced for drift; empty if it still must.
func (w userIntent) driftsNoMore(drift *driftcheck.Reconciler, c *karpv1.NodeClaim) string {
	pool := c.Labels[karpv1.LabelNodePool]
	switch held := drift.Held(pool); {
	case w.policies[pool].ObserveDrift:
		return "NodePool " + pool + " only observes drift now"
	case held != "":
		return held
	case !c.StatusConditions().IsTrue(karpv1.ConditionDrifted):
		return "node " + c.Status.NodeName + " does not drift any more"
	}
	return ""
}

// userIntent are what users say of moves while these are on their way.
type userIntent struct {
	policies map[string]disruption.Policy // by pool
	kept     map[string]string            // by Node: which object asked to keep it
}

// against returns why the user does not want the claim's node disrupted for the reason; empty if there is no objection.
func (w userIntent) against(c *karpv1.NodeClaim, reason disruption.Reason) string {
	pool := c.Labels[karpv1.LabelNodePool]
	p, known := w.policies[pool]
	wrong, isForbidden := p.Forbidden(reason)
	switch kept := w.kept[c.Status.NodeName]; {
	case p.Paused != "":
		return "NodePool " + pool + " was paused: " + p.Paused
	case kept != "":
		return "node " + c.Status.NodeName + " is kept by " + kept
	case isForbidden:
		return "NodePool " + pool + " does not allow it any more: " + wrong.String()
	case known && reason == disruption.Underutilized && (p.After == nil || !p.Method.Allows(reason)):
		return "NodePool " + pool + " wants no node taken away to save money any more"
	}
	return ""
}
