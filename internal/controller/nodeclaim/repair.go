package nodeclaim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// Repair finds unhealthy nodes, and blocks their repair if too many are unhealthy. With a nil receiver, see finds no
// unhealthy node.
type Repair struct {
	Cache  client.Reader      // reads objects from the informers
	Events loop.EventRecorder // emits events
}

// see returns the condition that makes a claim's Node unhealthy, and whether repair is blocked.
func (r *Repair) see(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, now time.Time) (lifecycle.HealthProblem, error) {
	if r == nil {
		return lifecycle.HealthProblem{}, nil
	}
	ailment := lifecycle.Diagnose(nodestate.SymptomsOf(node))
	if ailment.Condition == "" || now.Before(ailment.Due) {
		return ailment, nil
	}
	pool := claim.Labels[karpv1.LabelNodePool]
	unhealthy, total, err := r.countUnhealthy(ctx, pool)
	if err != nil || lifecycle.MayRepair(unhealthy, total) {
		return ailment, err
	}
	ailment.IsRepairBlocked = true
	where := "the cluster"
	if pool != "" {
		where = "NodePool " + pool
	}
	message := fmt.Sprintf("The node is not replaced although its condition %s is unhealthy: %d of %s of %s are unhealthy, more than a fifth, so the cause is probably not the instances",
		ailment.Condition, unhealthy, loop.Count(total, "node"), where)
	r.Events.Emit(node, kubeclient.ReasonRepairBlocked, message)
	r.Events.Emit(claim, kubeclient.ReasonRepairBlocked, message)
	return ailment, nil
}

// countUnhealthy counts the unhealthy nodes and all nodes of a pool, or of the cluster if pool is empty. A node that
// has been unhealthy only for a moment counts too.
func (r *Repair) countUnhealthy(ctx context.Context, pool string) (unhealthy, total int, err error) {
	var nodes corev1.NodeList
	if err := r.Cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return 0, 0, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if pool != "" && node.Labels[karpv1.LabelNodePool] != pool {
			continue
		}
		total++
		if lifecycle.Diagnose(nodestate.SymptomsOf(node)).Condition != "" {
			unhealthy++
		}
	}
	return unhealthy, total, nil
}

// endGracePeriod sets the termination deadline of an unhealthy node to now, so that its pods are deleted without
// waiting.
func (c *Reconciler) endGracePeriod(ctx context.Context, v View, condition string) (*karpv1.NodeClaim, error) {
	now := c.Now.Now()
	claim, err := c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) { nodestate.SetDeadline(claim, now) })
	if err != nil {
		return nil, err
	}
	c.Metrics.Unhealthy.WithLabelValues(condition, claim.Labels[karpv1.LabelNodePool],
		claim.Labels[karpv1.LabelCapacityType], claim.Status.ImageID).Inc()
	message := "The node is replaced: its condition " + condition + " has been unhealthy for too long"
	c.Events.Emit(claim, kubeclient.ReasonDisruptionTerminating, message)
	c.Events.Emit(v.node(), kubeclient.ReasonDisruptionTerminating, message)
	return claim, nil
}
