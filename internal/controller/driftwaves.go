package controller

import (
	"slices"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
)

// Waves says which drifted nodes of a pool may be replaced now, by name of the Node, the first to go first, and in one sentence
// for each of the others why it may not. Candidates are the Nodes that nothing else keeps; nil: all. Moving are those of the pool whose
// replacement has begun, as the caller knows it, until their claims are gone. Nothing may be replaced before there was a pass. Budgets are the
// caller's business.
func (d *Drift) Waves(pool string, candidates, moving []string) (allowed []string, stays map[string]string) {
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
	in.Moving = make([]string, p.emptied(moving)) // what replaces these is there, and waits for their pods
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

// emptied counts those of the moving nodes that a pass does not look at any more, as their claims are being deleted.
func (p poolDrift) emptied(moving []string) int {
	n := 0
	for _, node := range moving {
		if !slices.ContainsFunc(p.nodes, func(n nodeDrift) bool { return n.claim.Status.NodeName == node }) {
			n++
		}
	}
	return n
}

// held says why no drifted node of the pool is replaced until the user says so; empty if nothing is held, or nothing is known of it.
func (d *Drift) held(pool string) string {
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

// isMoving reports whether the claim says that it is being replaced because it drifts.
func (n nodeDrift) isMoving() bool {
	c, ok := n.claim.StatusConditions().Find(karpv1.ConditionDisruptionReason)
	return ok && c.Status == "True" && c.Reason == string(disruptionDrifted)
}

// disruptionDrifted is the reason of a disruption for drift: the value that budgets name.
const disruptionDrifted = disruption.Reason(karpv1.DisruptionDrifted)
