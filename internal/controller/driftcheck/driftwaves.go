package driftcheck

import (
	"slices"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
)

// Waves returns the drifted nodes of a pool that may be replaced now, by name of the Node, in order. For each of the others,
// stays has one sentence why it may not. candidates are the Nodes that nothing else keeps; nil: all. moving are the Nodes of
// the pool whose replacement has started, as the caller knows it, until their claims are gone. Before the first pass,
// nothing may be replaced. The caller applies budgets.
func (d *Reconciler) Waves(pool string, candidates, moving []string) (allowed []string, stays map[string]string) {
	d.mu.Lock()
	p, known := d.last[pool]
	d.mu.Unlock()
	if !known {
		return nil, nil
	}
	in := drift.WavesInput{
		Proven: p.proven, Failed: p.failed, Total: len(p.nodes), Canary: p.wish.Canary, Wave: p.wish.Wave, Held: p.wish.wrong,
	}
	if p.isHeld {
		_, in.Held = p.held()
	}
	in.Moving = make([]string, p.emptied(moving)) // their replacements exist and wait for their pods
	for _, n := range p.nodes {
		node := n.claim.Status.NodeName
		if slices.Contains(moving, node) || n.isMoving() {
			in.Moving = append(in.Moving, n.target)
			continue
		}
		_, drifts := drift.First(n.verdicts)
		if len(n.verdicts) == 0 && n.young && !n.fit {
			in.Trying = append(in.Trying, n.target)
		}
		if !drifts || p.wish.ObserveDrift || node == "" || candidates != nil && !slices.Contains(candidates, node) {
			continue
		}
		d := drift.Drifted{Node: node, Target: n.target, Since: n.claim.CreationTimestamp.Time}
		if c, ok := n.claim.StatusConditions().Find(karpv1.ConditionDrifted); ok {
			d.Since = c.LastTransitionTime.Time
		}
		in.Drifted = append(in.Drifted, d)
	}
	return drift.Waves(in)
}

// emptied counts the moving nodes that a pass no longer sees, because their claims are being deleted.
func (p poolDrift) emptied(moving []string) int {
	n := 0
	for _, node := range moving {
		if !slices.ContainsFunc(p.nodes, func(n nodeDrift) bool { return n.claim.Status.NodeName == node }) {
			n++
		}
	}
	return n
}

// Held returns why no drifted node of the pool is replaced without the user's approval; empty if nothing is held, or nothing
// is known of the pool.
func (d *Reconciler) Held(pool string) string {
	if d == nil {
		return ""
	}
	d.mu.Lock()
	p := d.last[pool]
	d.mu.Unlock()
	if !p.isHeld {
		return ""
	}
	_, why := p.held()
	return why
}

// isMoving reports whether a condition of the claim shows that it is being replaced because of drift.
func (n nodeDrift) isMoving() bool {
	c, ok := n.claim.StatusConditions().Find(karpv1.ConditionDisruptionReason)
	return ok && c.Status == "True" && c.Reason == string(disruptionDrifted)
}

// disruptionDrifted is the reason of disruptions for drift: the value that budgets name.
const disruptionDrifted = disruption.Reason(karpv1.DisruptionDrifted)
