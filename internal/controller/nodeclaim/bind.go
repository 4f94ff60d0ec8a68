package nodeclaim

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// observeClosed reads, for a Node with the taint TaintNominations, since when the Node is ready, when pods are bound to
// it, and when it may be opened. A Node that a user has uncordoned is opened at once, because other pods may already be
// bound to it.
func (c *Reconciler) observeClosed(ctx context.Context, v *View, now time.Time) {
	n, claim := &v.seen.Node, v.Claim.UID
	n.ReadySince = c.openable.Note(claim, n.HasNominationTaint && n.Ready, now)
	switch {
	case n.ReadySince.IsZero():
		c.bindAttempts.forget(claim)
	case conversion.IsUncordoned(v.node()):
	case n.Startup != "" || n.Ephemeral != "":
		mayBind := !now.Before(bindDeadline(n, false)) && now.Before(bindDeadline(n, true))
		n.ShouldCordon = mayBind && !v.node().Spec.Unschedulable
	case !c.bindAttempts.of(claim).isSet:
		n.BindAt = now
	default:
		c.observeAttempts(ctx, v, now)
	}
}

// observeAttempts reads when pods are bound, and when the Node is opened, after the first attempt to bind pods.
func (c *Reconciler) observeAttempts(ctx context.Context, v *View, now time.Time) {
	n, claim := &v.seen.Node, v.Claim.UID
	b := c.bindAttempts.of(claim)
	if !b.at.IsZero() && b.seen.IsZero() {
		if age := now.Sub(b.at); age < maxSeenWait && !c.areBound(ctx, b.pods) {
			n.IsBinding, n.OpenAt = true, now.Add(max(minSeenPoll, age/4))
			return
		}
		c.bindAttempts.recordSeen(claim, now)
		b = c.bindAttempts.of(claim)
	}
	isBlocked, deadline := !b.next.IsZero(), bindDeadline(n, n.IsCordonedForPods)
	switch settled := b.settled(); {
	case isBlocked && now.Before(deadline):
		n.BindAt, n.OpenAt = b.next, deadline
	case isBlocked && now.Before(bindDeadline(n, true)) && !v.node().Spec.Unschedulable:
		n.ShouldCordon = true
	case now.Before(settled):
		n.IsBinding, n.OpenAt = true, settled
	case len(c.waitingPods(ctx, *v)) > 0:
		n.OpenAt = c.openings.turn(claim, len(conversion.PodsOf(v.Claim)), c.Pods.LastAttempt(), now)
	}
}

// bindDeadline returns when the last attempt is made to bind blocked pods to the closed Node, with or without a cordon. It
// leaves time to settle before the Node opens.
func bindDeadline(n *lifecycle.Node, isCordoned bool) time.Time {
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
	decision, err := c.assumed.decide(ctx, c.Cache, v.Claim, v.node(), now)
	if err != nil {
		c.bindAttempts.record(v.Claim.UID, nil, false, now) // so that the Node opens
		return nil, err
	}
	var pods []waitingPod
	for _, p := range c.waitingPods(ctx, v) {
		if slices.Contains(decision.Bind, p.Namespace+"/"+p.Name) {
			pods = append(pods, p)
		}
	}
	bound, err := c.bind(ctx, pods, v)
	isBlocked := len(decision.Blocked) > 0 && err == nil
	c.bindAttempts.record(v.Claim.UID, bound, isBlocked, c.Now.Now())
	return v.Claim, nil
}

// bind binds the pods to the Node, and returns those that it has bound, and the first error. It forgets the others: if
// they still wait when the Node opens, they are nominated.
func (c *Reconciler) bind(ctx context.Context, pods []waitingPod, v View) ([]types.NamespacedName, error) {
	node := v.node().Name
	isBound, errs := make([]bool, len(pods)), make([]error, len(pods))
	inParallel(len(pods), func(i int) {
		isBound[i], errs[i] = c.Binder.Bind(ctx, pods[i].PodRef, node)
	})
	var bound []types.NamespacedName
	var assumed []*corev1.Pod
	var first error
	for i, p := range pods {
		if isBound[i] {
			bound = append(bound, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
			assumed = append(assumed, p.object)
			continue
		}
		c.assumed.forget(p.Namespace + "/" + p.Name)
		if first == nil {
			first = errs[i]
		}
	}
	c.assumed.assume(assumed, v.Claim.UID, node, c.Now.Now()) // the writes may have taken seconds
	if apierrors.IsForbidden(first) {
		c.Log.Debug("no permission to bind pods to new Nodes: they are only nominated", "Node", node, "error", first)
	} else if first != nil {
		c.Log.Warn("cannot bind pods to a new Node: they are only nominated, and kube-scheduler may bind other pods there", "Node", node,
			"error", first, "hint", kubeclient.Hint(first))
	}
	return bound, first
}
