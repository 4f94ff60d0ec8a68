package nodeclaim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// register prepares the Node as the claim requires, and removes the unregistered taint, which kept pods off the Node.
func (c *Reconciler) register(ctx context.Context, v View, now time.Time) (*karpv1.NodeClaim, error) {
	node, pool := v.node(), v.Claim.Labels[karpv1.LabelNodePool]
	isHeld := c.isHeld(ctx, v) // a taint keeps other pods off until the claim's pods are bound or nominated
	lacksTaint := node.Labels[karpv1.LabelRegistered] != "true" && !HasTaint(node, karpv1.TaintUnregistered)
	node, err := c.Objects.PatchNode(ctx, node, func(n *corev1.Node) {
		if isHeld && n.Labels[karpv1.LabelRegistered] != "true" {
			n.Spec.Taints = append(slices.Clone(n.Spec.Taints), conversion.NominationsTaint())
		}
		Prepare(n, v.Claim)
	})
	if err != nil {
		return nil, err
	}
	if lacksTaint {
		c.Events.Emit(v.Claim, kubeclient.ReasonUnregisteredTaint, missingTaintMessage(node))
	}
	claim, err := c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		claim.Status.NodeName = node.Name
		conditions := claim.StatusConditions()
		conditions.SetTrue(now, karpv1.ConditionRegistered)
		conditions.SetUnknown(now, karpv1.ConditionInitialized, karpv1.ReasonNodeNotReady, "the Node is not ready yet")
	})
	if err != nil {
		return nil, err
	}
	c.LaunchBackoff.Joined(now, pool)
	c.Edits.Clear(pool)
	if !v.seen.Claim.Registered {
		c.Registrations.Note(claim, true) // true: the node joined
		c.expectPods(ctx, claim)
		c.Metrics.Join.WithLabelValues("registered", pool).Observe(now.Sub(claim.CreationTimestamp.Time).Seconds())
	}
	c.Metrics.Nodes.Created.WithLabelValues(pool).Inc()
	c.Log.Info("registered NodeClaim", "NodeClaim", claim.Name, "nodePool", pool, "Node", node.Name,
		"seconds", now.Sub(claim.CreationTimestamp.Time).Seconds())
	return claim, nil
}

// missingTaintMessage returns the event message about a Node that joined without the unregistered taint. node must be
// the latest version from the API server: its managed fields name the writers of its taints only until the taints are
// written again.
func missingTaintMessage(node *corev1.Node) string {
	out := "Node " + node.Name + " joined without the taint " + karpv1.TaintUnregistered +
		":NoExecute, so pods may have run on it before it was prepared: "
	if by := diagnosis.UnexpectedTaintWriters(evidence.TaintWriters(node)); len(by) > 0 {
		return out + "it was " + diagnosis.TaintRemoversPrefix + strings.Join(by, ", ")
	}
	return out + "add it in spec.userData of the EC2NodeClass"
}

// Prepare sets the labels, annotations, taints, finalizer and owner that the claim requires.
func Prepare(node *corev1.Node, claim *karpv1.NodeClaim) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	taints := slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints)
	if node.Labels[karpv1.LabelDoNotSyncTaints] == "true" || node.Labels[karpv1.LabelRegistered] == "true" {
		taints = nil // the bootstrap or an earlier registration has set the taints; startup taints may have been removed since
	}
	maps.Copy(node.Labels, claim.Labels)
	for key, value := range claim.Annotations {
		// These annotations are for the claim only, and may be long.
		if key != conversion.AnnotationPods && key != conversion.AnnotationPoolParts && key != conversion.AnnotationClassParts {
			node.Annotations[key] = value
		}
	}
	node.Labels[karpv1.LabelRegistered] = "true"
	kept := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Key == karpv1.TaintUnregistered })
	for _, taint := range taints {
		if !slices.ContainsFunc(kept, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			kept = append(kept, taint)
		}
	}
	node.Spec.Taints = kept
	if !slices.Contains(node.Finalizers, karpv1.FinalizerTermination) {
		node.Finalizers = append(slices.Clone(node.Finalizers), karpv1.FinalizerTermination)
	}
	if !slices.ContainsFunc(node.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == claim.UID }) {
		yes := true
		node.OwnerReferences = append(slices.Clone(node.OwnerReferences), metav1.OwnerReference{
			APIVersion: karpv1.GroupVersion.String(), Kind: "NodeClaim", Name: claim.Name, UID: claim.UID, BlockOwnerDeletion: &yes,
		})
	}
}

// restoreFinalizer restores a lost finalizer of the Node. Without the finalizer, a deleted Node would be gone before
// its pods are drained.
func (c *Reconciler) restoreFinalizer(ctx context.Context, v View) (*karpv1.NodeClaim, error) {
	_, err := c.Objects.PatchNode(ctx, v.node(), func(n *corev1.Node) {
		if !slices.Contains(n.Finalizers, karpv1.FinalizerTermination) {
			n.Finalizers = append(slices.Clone(n.Finalizers), karpv1.FinalizerTermination)
		}
	})
	if err != nil {
		return nil, err
	}
	c.Log.Info("restored the finalizer of a Node that had lost it", "Node", v.node().Name, "NodeClaim", v.Claim.Name)
	return nil, nil // the change triggers the next reconciliation
}

// HasTaint reports whether the Node has a taint with the key, of any effect.
func HasTaint(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

func (c *Reconciler) initialize(ctx context.Context, v View, now time.Time) (*karpv1.NodeClaim, error) {
	if _, err := c.Objects.PatchNode(ctx, v.node(), func(n *corev1.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[karpv1.LabelInitialized] = "true"
	}); err != nil {
		return nil, err
	}
	claim, err := c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		claim.StatusConditions().SetTrue(now, karpv1.ConditionInitialized)
	})
	if err != nil {
		return nil, err
	}
	c.Offers.Market.Measured.Note(claim, v.node(), now)
	c.PodBackoff.Ready(claim, now)
	c.Metrics.Join.WithLabelValues("initialized", claim.Labels[karpv1.LabelNodePool]).Observe(now.Sub(claim.CreationTimestamp.Time).Seconds())
	c.Log.Info("initialized NodeClaim", "NodeClaim", claim.Name, "nodePool", claim.Labels[karpv1.LabelNodePool], "Node", v.node().Name,
		"seconds", now.Sub(claim.CreationTimestamp.Time).Seconds())
	return claim, nil
}

// wait writes to the claim's conditions what the claim waits for.
func (c *Reconciler) wait(ctx context.Context, v View, step lifecycle.Step, now time.Time) (*karpv1.NodeClaim, error) {
	condition, message := "", ""
	switch step.Phase {
	case lifecycle.Created:
		if step.Reason == lifecycle.WaitNodeClass {
			condition = karpv1.ConditionLaunched
			message = "the EC2NodeClass " + v.Claim.Spec.NodeClassRef.Name + " is not ready, or its readiness is not known yet"
		}
	case lifecycle.Launched:
		condition, message = karpv1.ConditionRegistered, "the instance has not joined the cluster yet"
		if reason, why, known := c.Diagnoses.Verdict(v.Claim); known && step.Reason == lifecycle.WaitNode {
			step.Reason, message = reason, why
		}
		switch step.Reason {
		case lifecycle.WaitOneNode:
			message = step.Detail + " Nodes have the provider ID of this claim, but only one can belong to its instance"
		case lifecycle.WaitIdentity, lifecycle.WaitConfirmation:
			message = step.Detail
		}
	case lifecycle.Registered:
		if step.Reason == lifecycle.WaitOpening {
			return v.Claim, nil // no condition: the claim waits at most some seconds
		}
		condition, message = karpv1.ConditionInitialized, waitingFor(step)
	case lifecycle.Ready:
		if step.Reason == lifecycle.WaitReplacement {
			c.Events.Emit(v.Claim, kubeclient.ReasonWaitingReadiness, "Expired: waiting until the nodes that replace it are ready for its pods")
		}
		return c.checkShape(ctx, v, now)
	case lifecycle.Draining:
		return c.waitDraining(ctx, v, step, now)
	case lifecycle.Gone:
	}
	if condition == "" {
		return v.Claim, nil
	}
	return c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		conditions := claim.StatusConditions()
		conditions.Start(now)
		conditions.SetUnknown(now, condition, step.Reason, message)
	})
}

// waitingFor returns the message of the condition Initialized.
func waitingFor(step lifecycle.Step) string {
	switch step.Reason {
	case lifecycle.WaitReady:
		return "the Node is not ready yet"
	case lifecycle.WaitStartupTaint:
		return "the startup taint " + step.Detail + " is still on the Node"
	case lifecycle.WaitEphemeral:
		return "the taint " + step.Detail + " is still on the Node"
	case lifecycle.WaitResource:
		return "the Node does not report " + step.Detail + " yet: check that its device plugin is running"
	case lifecycle.WaitOneNode:
		return step.Detail + " Nodes have the provider ID of this claim, but only one can belong to its instance"
	}
	return "the Node is gone"
}
