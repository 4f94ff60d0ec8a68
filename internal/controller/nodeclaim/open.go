package nodeclaim

import (
	"context"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/writer"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// Binder binds pods to Nodes, and nominates them with status.nominatedNodeName. Bind returns false if the pod is already
// gone or bound.
type Binder interface {
	Bind(ctx context.Context, pod writer.PodRef, node string) (bool, error)
	Nominate(ctx context.Context, pod writer.PodRef, node string) error
}

// parallelWrites is the number of pods that are bound or nominated at the same time.
const parallelWrites = 10

// isHeld reports whether the Node that registers now is kept closed until its pods are bound or nominated to it. A Node
// with startup taints is not kept closed, because kube-scheduler clears nominations for a node while another taint keeps
// the pods off it. A Node that is open already is not closed again.
func (c *Reconciler) isHeld(ctx context.Context, v View) bool {
	isOpen := nodestate.IsReady(v.node()) && !HasTaint(v.node(), karpv1.TaintUnregistered)
	if c.Binder == nil || isOpen || len(v.Claim.Spec.StartupTaints) > 0 || len(conversion.PodsOf(v.Claim)) == 0 {
		return false
	}
	var daemons appsv1.DaemonSetList
	if err := c.Cache.List(ctx, &daemons); err != nil {
		return false // the taint might delay DaemonSet pods; without the taint, other pods may be bound to the Node
	}
	return !slices.ContainsFunc(daemons.Items, func(d appsv1.DaemonSet) bool { return isDelayed(d.Spec.Template.Spec.Tolerations) })
}

// isDelayed reports whether the taint for nominations would keep DaemonSet pods with the tolerations off a Node that is
// not ready, where they could start otherwise. The Node may need such a pod to become ready, for example a network
// plug-in.
func isDelayed(tolerations []corev1.Toleration) bool {
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	ours := conversion.NominationsTaint()
	return tolerates(tolerations, &notReady) && !tolerates(tolerations, &ours)
}

func tolerates(all []corev1.Toleration, taint *corev1.Taint) bool {
	return slices.ContainsFunc(all, func(t corev1.Toleration) bool {
		matchesEffect := t.Effect == "" || t.Effect == taint.Effect
		matchesAllKeys := t.Key == "" && t.Operator == corev1.TolerationOpExists
		matchesKey := t.Key == taint.Key && (t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
		return matchesEffect && (matchesAllKeys || matchesKey)
	})
}

func (c *Reconciler) actOnRegistered(ctx context.Context, v View, step lifecycle.Step, now time.Time) (*karpv1.NodeClaim, error) {
	switch {
	case step.Action == lifecycle.BindPods:
		return c.bindPods(ctx, v, now)
	case step.Action == lifecycle.CordonForPods:
		_, err := c.Objects.PatchNode(ctx, v.node(), conversion.CordonForPods)
		return nil, err // the change triggers the next reconciliation
	case step.Action == lifecycle.RemoveNominationTaint:
		return c.open(ctx, v, now)
	}
	return c.restoreFinalizer(ctx, v)
}

// open nominates the pods that the Node was launched for and that are not bound, and then removes the taint or the
// cordon that kept other pods off it.
func (c *Reconciler) open(ctx context.Context, v View, now time.Time) (*karpv1.NodeClaim, error) {
	c.assumed.assume(c.plannedPods(ctx, v.Claim), v.Claim.UID, v.node().Name, now)
	pods := c.waitingPods(ctx, v)
	nominated, err := c.nominate(ctx, pods, v.node().Name)
	if err != nil {
		// Open the Node anyway: kube-scheduler may still bind its pods as planned.
		c.Log.Warn("cannot nominate pods to a new Node: kube-scheduler may bind other pods there", "Node", v.node().Name,
			"error", err, "hint", kubeclient.Hint(err))
	}
	_, err = c.Objects.PatchNode(ctx, v.node(), conversion.Open)
	c.openings.done(v.Claim.UID, c.Now.Now())
	bound := len(c.bindAttempts.of(v.Claim.UID).pods)
	c.bindAttempts.forget(v.Claim.UID)
	if err != nil {
		return nil, err
	}
	c.Log.Info("opened Node", "Node", v.node().Name, "NodeClaim", v.Claim.Name, "boundPods", bound, "nominatedPods", nominated,
		"secondsReady", now.Sub(v.seen.Node.ReadySince).Seconds())
	return nil, nil // the change triggers the next reconciliation
}

// OpenWhenStopped waits until ctx ends, and then removes the taint for nominations, or the cordon in its place, from all
// Nodes: after an uninstallation no controller would remove it.
func (c *Reconciler) OpenWhenStopped(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openAllWithin)
	defer cancel()
	select { // kube-scheduler must see the last bindings before the Nodes open
	case <-time.After(2 * bindSettleTime):
	case <-ctx.Done():
	}
	var nodes corev1.NodeList
	if err := c.Cache.List(ctx, &nodes); err != nil {
		c.Log.Warn("cannot list the Nodes that are closed for nominations", "error", err, "taint", conversion.TaintNominations)
		return nil
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if !HasTaint(node, conversion.TaintNominations) {
			continue
		}
		if _, err := c.Objects.PatchNode(ctx, node, conversion.Open); err != nil {
			c.Log.Warn("cannot open a Node before the controller ends: if no controller is started again, uncordon the Node and remove "+
				"the taint by hand", "Node", node.Name, "taint", conversion.TaintNominations, "error", err)
		}
	}
	return nil
}

const openAllWithin = 5 * time.Second

// waitingPod is a pod that is not bound yet.
type waitingPod struct {
	writer.PodRef
	object *corev1.Pod
}

// waitingPods returns the pending pods that are planned for the claim and that this process has not bound.
func (c *Reconciler) waitingPods(ctx context.Context, v View) []waitingPod {
	bound := c.bindAttempts.of(v.Claim.UID).pods
	var pods []waitingPod
	for _, pod := range c.plannedPods(ctx, v.Claim) {
		if isWaiting(pod) && !slices.Contains(bound, client.ObjectKeyFromObject(pod)) {
			ref := writer.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
			pods = append(pods, waitingPod{ref, pod})
		}
	}
	return pods
}

// nominate returns how many of the pods are nominated to the Node now, and the first error.
func (c *Reconciler) nominate(ctx context.Context, pods []waitingPod, node string) (int, error) {
	errs := make([]error, len(pods))
	inParallel(len(pods), func(i int) {
		if pods[i].object.Status.NominatedNodeName != node {
			errs[i] = c.Binder.Nominate(ctx, pods[i].PodRef, node)
		}
	})
	done := 0
	var first error
	for _, err := range errs {
		if err == nil {
			done++
		} else if first == nil {
			first = err
		}
	}
	return done, first
}

// inParallel calls write for 0 to n-1, parallelWrites at the same time, and waits for the last one.
func inParallel(n int, write func(i int)) {
	var writers sync.WaitGroup
	for k := range min(parallelWrites, n) {
		writers.Go(func() {
			for i := k; i < n; i += parallelWrites {
				write(i)
			}
		})
	}
	writers.Wait()
}
