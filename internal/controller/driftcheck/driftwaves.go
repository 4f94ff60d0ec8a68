package driftcheck

import (
	"slices"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
)

// Waves returns the names of the drifted Nodes of a pool that may be replaced now, in the order in which they drifted.
// waits has, by Node, why a drifted Node must wait. candidates are the Nodes that the caller may replace; nil: all.
// moving are the Nodes of the pool whose replacement has started, until their claims are gone. Before the first pass,
// no Node may be replaced. The caller applies budgets.
func (d *Reconciler) Waves(pool string, candidates, moving []string) (allowed []string, waits map[string]string) {
	d.mu.Lock()
	p, known := d.last[pool]
	d.mu.Unlock()
	if !known {
		return nil, nil
	}
	in := drift.WavesInput{
		Proven: p.proven, Failed: p.failed, Total: len(p.nodes), Canary: p.settings.Canary, Wave: p.settings.Wave, Held: p.settings.problem,
	}
	if p.isHeld {
		_, in.Held = p.holdCondition()
	}
	in.Moving = make([]string, p.countDeleting(moving)) // an empty target for each node whose claim is being deleted
	for _, n := range p.nodes {
		node := n.claim.Status.NodeName
		if slices.Contains(moving, node) || n.isMoving() {
			in.Moving = append(in.Moving, n.target)
			continue
		}
		_, drifts := drift.First(n.verdicts)
		if len(n.verdicts) == 0 && n.isYoung && !n.isFit { // the node will show whether its target works
			in.Trying = append(in.Trying, n.target)
		}
		isCandidate := node != "" && (candidates == nil || slices.Contains(candidates, node))
		if !drifts || p.settings.ObserveDrift || !isCandidate {
			continue
		}
		drifted := drift.Drifted{Node: node, Target: n.target, Since: n.claim.CreationTimestamp.Time}
		if c, ok := n.claim.StatusConditions().Find(karpv1.ConditionDrifted); ok {
			drifted.Since = c.LastTransitionTime.Time
		}
		in.Drifted = append(in.Drifted, drifted)
	}
	return drift.Waves(in)
}

// countDeleting returns how many of the moving nodes the last pass did not see, because their claims are being deleted.
func (p poolDrift) countDeleting(moving []string) int {
	count := 0
	for _, node := range moving {
		if !slices.ContainsFunc(p.nodes, func(n nodeDrift) bool { return n.claim.Status.NodeName == node }) {
			count++
		}
	}
	return count
}

// HoldReason returns why the user must approve a mass drift of the pool before its drifted nodes are replaced. It is
// empty if no mass drift waits for approval, before the first pass, or if d is nil: then only budgets limit drift.
func (d *Reconciler) HoldReason(pool string) string {
	if d == nil {
		return ""
	}
	d.mu.Lock()
	p := d.last[pool]
	d.mu.Unlock()
	if !p.isHeld {
		return ""
	}
	_, why := p.holdCondition()
	return why
}

// isMoving reports whether a condition of the claim shows that its node is being replaced because of drift.
func (n nodeDrift) isMoving() bool {
	c, ok := n.claim.StatusConditions().Find(karpv1.ConditionDisruptionReason)
	return ok && c.Status == "True" && c.Reason == string(disruption.Drifted)
}
