package disruptor

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
)

// StrayAfter is how long a Node must have been tainted without a known cause before the taint is removed. Before that,
// the cause may be missing only because the cache does not show it yet.
const StrayAfter = time.Minute

// clearStrays removes the disrupted taint from Nodes that nothing drains, and the DisruptionReason condition from their
// claims. Such Nodes exist in two cases: a move was undone before the cache showed the taint, or another controller was
// uninstalled during a move.
func (m *Disruptor) clearStrays(ctx context.Context, o snapshot.Objects, now time.Time) error {
	claimOf := map[string]*karpv1.NodeClaim{} // by provider ID
	for _, c := range o.Claims {
		if nodestate.IsServed(c.Spec.NodeClassRef) && c.Status.ProviderID != "" {
			claimOf[c.Status.ProviderID] = m.newest.Of(c)
		}
	}
	strays := map[types.UID]time.Time{}
	var nodes []*corev1.Node
	var claims []*karpv1.NodeClaim
	for _, n := range o.Nodes {
		claim := claimOf[n.Spec.ProviderID]
		if claim == nil || !snapshot.IsNodeOf(claim, n) || n.DeletionTimestamp != nil || !isStray(n, claim) || m.Lock.IsChosen(claim.UID, now) {
			continue
		}
		since, known := m.strays[n.UID]
		if !known {
			since = now
		}
		strays[n.UID] = since
		if now.Sub(since) < StrayAfter {
			continue
		}
		nodes, claims = append(nodes, n), append(claims, claim)
	}
	m.strays = strays
	if len(nodes) == 0 {
		return nil
	}
	err := errors.Join(patchNodes(ctx, m.Objects, nodes, nodestate.OpenNode), m.patchClaims(ctx, claims, nodestate.DropReason))
	if err != nil {
		for _, n := range nodes {
			strays[n.UID] = now // retry a failed patch only after StrayAfter
		}
		return err
	}
	m.Log.Info("uncordoned Nodes that were cordoned for a move that no longer exists", "Nodes", nodeNames(nodes))
	return nil
}

// isStray reports whether the Node is tainted or its claim has a DisruptionReason, although nothing drains the Node.
func isStray(n *corev1.Node, claim *karpv1.NodeClaim) bool {
	_, hasReason := claim.StatusConditions().Find(karpv1.ConditionDisruptionReason)
	return (!nodestate.IsOpen(n) || hasReason) && claim.DeletionTimestamp == nil && !nodestate.IsLeaving(claim) &&
		claim.Annotations[nodestate.AnnotationInterrupted] == ""
}
