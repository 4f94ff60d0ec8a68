package nodeclaim

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// seeHeld reads, for a Node with the taint TaintNominations, since when the Node is ready, when pods are bound to it,
// and when it may be opened. A Node that a user has uncordoned is opened at once: other pods may come to it.
func (c *Reconciler) seeHeld(ctx context.Context, v *View, now time.Time) {
	n, claim := &v.seen.Node, v.Claim.UID
	n.ReadySince = c.openable.Note(claim, n.HasNominationTaint && n.Ready, now)
	switch {
	case n.ReadySince.IsZero():
		c.bindings.forget(claim)
	case conversion.IsUncordoned(v.node()):
	case n.Startup != "" || n.Ephemeral != "":
		n.MayCordon = !n.IsCordoned && !now.Before(closedUntil(n, false)) && now.Before(closedUntil(n, true))
	case !c.bindings.of(claim).isTried:
		n.BindAt = now
	default:
		c.seeBindings(ctx, v, now)
	}
}

// seeBindings reads when pods are bound, and when the Node is opened, after the first attempt to bind pods.
func (c *Reconciler) seeBindings(ctx context.Context, v *View, now time.Time) {
	n, claim := &v.seen.Node, v.Claim.UID
	b := c.bindings.of(claim)
	if !b.at.IsZero() && b.seen.IsZero() {
		if !c.areBound(ctx, b.pods) && now.Sub(b.at) < maxSeenWait {
			n.IsBinding, n.OpenAt = true, now.Add(seenPoll)
			return
		}
		c.bindings.see(claim, now)
		b = c.bindings.of(claim)
	}
	isBlocked, limit := !b.next.IsZero(), closedUntil(n, n.IsCordoned)
	switch settled := b.settled(); {
	case isBlocked && now.Before(limit):
		n.BindAt, n.OpenAt = b.next, limit
	case isBlocked && now.Before(closedUntil(n, true)):
		n.MayCordon = true
	case now.Before(settled):
		n.OpenAt = settled
	case len(c.waitingPods(ctx, *v)) > 0:
		n.OpenAt = c.openings.turn(claim, len(conversion.PodsOf(v.Claim)), c.Pods.LastAttempt(), now)
	}
}

// closedUntil returns how long pods are bound to the closed Node, by the taint or by the cordon. Later bindings could not
// settle before the Node opens.
func closedUntil(n *lifecycle.Node, isCordoned bool) time.Time {
	limit := n.ReadySince.Add(lifecycle.MaxNominationWait - 2*bindSettleTime)
	if isCordoned {
		limit = limit.Add(lifecycle.MaxCordon)
	}
	return limit
}

// areBound reports whether the cache shows all the pods as bound, or as gone.
func (c *Reconciler) areBound(ctx context.Context, pods []types.NamespacedName) bool {
	return !slices.ContainsFunc(pods, func(key types.NamespacedName) bool {
		pod := &corev1.Pod{}
		return c.Cache.Get(ctx, key, pod) == nil && pod.Spec.NodeName == ""
	})
}

// bindPods binds the pods that the Node was launched for to the closed Node, as far as their rules allow it now.
func (c *Reconciler) bindPods(ctx context.Context, v View, now time.Time) (*karpv1.NodeClaim, error) {
	decision, err := c.granted.decide(ctx, c.Cache, v.Claim, v.node(), now)
	if err != nil {
		return nil, err
	}
	var pods []waitingPod
	for _, p := range c.waitingPods(ctx, v) {
		if slices.Contains(decision.Bind, p.Namespace+"/"+p.Name) {
			pods = append(pods, p)
		}
	}
	bound := c.bind(ctx, pods, v.node().Name)
	isBlocked := len(decision.Blocked) > 0
	c.bindings.tried(v.Claim.UID, bound, isBlocked, c.Now.Now())
	return v.Claim, nil
}

// bind binds the pods to the Node, and returns those that are bound now. It revokes the places of the others: they are
// nominated when the Node opens.
func (c *Reconciler) bind(ctx context.Context, pods []waitingPod, node string) []types.NamespacedName {
	isBound, errs := make([]bool, len(pods)), make([]error, len(pods))
	inParallel(len(pods), func(i int) {
		isBound[i], errs[i] = c.Placer.Bind(ctx, pods[i].PodRef, node)
	})
	var bound []types.NamespacedName
	var first error
	for i, p := range pods {
		key := client.ObjectKey{Namespace: p.Namespace, Name: p.Name}
		if isBound[i] {
			bound = append(bound, key)
			continue
		}
		c.granted.revoke(key.String())
		if first == nil {
			first = errs[i]
		}
	}
	if apierrors.IsForbidden(first) {
		c.Log.Debug("no permission to bind pods to new Nodes: they are only nominated", "Node", node, "error", first)
	} else if first != nil {
		c.Log.Warn("cannot bind pods to a new Node: they are only nominated, and kube-scheduler may bind other pods there", "Node", node,
			"error", first, "hint", kubeclient.Hint(first))
	}
	return bound
}
