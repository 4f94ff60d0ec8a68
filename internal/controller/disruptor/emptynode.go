package disruptor

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

type emptyNode struct {
	node   string            // name of the node
	object *corev1.Node      // the Node; nil: the cache no longer has it
	claim  *karpv1.NodeClaim // the NodeClaim of the node
	move   disruption.Move   // the proposed move with this node
}

func withNodes(leaving []emptyNode, nodes []*corev1.Node) []emptyNode {
	for i := range leaving {
		for _, n := range nodes {
			if n.Name == leaving[i].node {
				leaving[i].object = n
			}
		}
	}
	return leaving
}

func (e *Emptiness) remove(ctx context.Context, leaving []emptyNode, now time.Time) error {
	started := time.Now()
	var group errgroup.Group
	group.SetLimit(nodestate.ParallelClaims)
	for _, l := range leaving {
		group.Go(func() error {
			stays, err := e.removeOne(ctx, l, now)
			if stays {
				e.Lock.Forget(l.claim.UID)
				return err
			}
			e.Lock.NoteStart(l.claim.UID, now.Add(time.Since(started))) // earlier removals may have taken a while
			return err
		})
	}
	return group.Wait()
}

// removeOne deletes the claim of a node, unless a pod has been bound to the node: then stays is true. A deletion cannot
// be undone and evicts the node's pods. So removeOne first closes the Node to new pods. Then it reads from the API
// server the pods that kube-scheduler has bound since the cache was read, which can be dozens. If the claim cannot be
// deleted, for example because of a conflict, removeOne opens the Node again, and stays is true. If the Node stayed
// closed, the next pass would treat it as already leaving. A claim without a Node is deleted at once.
func (e *Emptiness) removeOne(ctx context.Context, l emptyNode, now time.Time) (stays bool, err error) {
	if l.object == nil {
		return false, e.deleteEmpty(ctx, l, now)
	}
	closed, err := e.closeEmpty(ctx, l)
	if closed == nil || err != nil {
		return true, err
	}
	if err := e.deleteEmpty(ctx, l, now); err != nil {
		_, openErr := e.Objects.PatchNode(ctx, closed, nodestate.OpenNode)
		return true, errors.Join(err, openErr)
	}
	return false, nil
}

func (e *Emptiness) deleteEmpty(ctx context.Context, l emptyNode, now time.Time) error {
	claim, err := e.Objects.PatchClaim(ctx, l.claim, func(c *karpv1.NodeClaim) {
		c.StatusConditions().Set(now, nodestate.DisruptionReason(l.move.Reason))
	})
	if err != nil {
		return err
	}
	if err := e.Objects.Delete(ctx, claim); err != nil {
		return err
	}
	reason := strings.ToLower(string(l.move.Reason))
	nodestate.PodLoss{Claim: claim, Reason: reason}.Count(e.Metrics)
	nodestate.MoveMark{Reason: l.move.Reason, Nodes: 1}.CountStarted(e.Metrics, []*karpv1.NodeClaim{claim})
	e.Events.Emit(claim, kubeclient.ReasonDisruptionTerminating, "Disrupting NodeClaim: "+string(l.move.Reason))
	e.Log.Info("deleted NodeClaim", "NodeClaim", claim.Name, "nodePool", l.move.Pool, "reason", reason, "Node", l.node,
		"providerID", claim.Status.ProviderID)
	return nil
}

// closeEmpty closes the Node to new pods and returns it. If the Node is not empty, or if its pods cannot be read,
// closeEmpty opens the Node again and returns nil.
func (e *Emptiness) closeEmpty(ctx context.Context, l emptyNode) (*corev1.Node, error) {
	closed, err := e.Objects.PatchNode(ctx, l.object, nodestate.CloseNode)
	if err != nil {
		return nil, err
	}
	pods, err := e.Live.PodsNow(ctx, l.node)
	bound := 0
	for _, pod := range pods {
		if conversion.NeedsPlace(pod) {
			bound++
		}
	}
	if err == nil && bound == 0 {
		return closed, nil
	}
	_, openErr := e.Objects.PatchNode(ctx, closed, nodestate.OpenNode)
	if err = errors.Join(err, openErr); err != nil {
		return nil, err
	}
	e.Metrics.Invalid.WithLabelValues(nodestate.KindEmpty).Inc()
	e.Log.Info("kept an empty Node: pods were bound to it before its removal", "Node", l.node, "NodeClaim", l.claim.Name,
		"nodePool", l.move.Pool, "pods", bound)
	return nil, nil
}
