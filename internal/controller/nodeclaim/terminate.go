package nodeclaim

import (
	"context"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/controller/diagnoser"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// delete deletes the claim, and records and reports step.Reason.
func (c *Reconciler) delete(ctx context.Context, v View, step lifecycle.Step) error {
	if step.Reason == lifecycle.ReasonUnhealthy {
		var err error
		if v.Claim, err = c.endGracePeriod(ctx, v, step.Detail); err != nil {
			return err
		}
	}
	if step.Reason == lifecycle.ReasonRegistrationTimeout {
		if err := c.Drift.RecordFailure(ctx, v.Claim, whyLate(c.Diagnoses, v.Claim), c.Now.Now()); err != nil {
			return err
		}
	}
	if err := c.Objects.Delete(ctx, v.Claim); err != nil {
		return err
	}
	pool := v.Claim.Labels[karpv1.LabelNodePool]
	displaced := nodestate.DisplacedPods(ctx, c.Cluster, v.Claim, c.Now.Now())
	nodestate.PodLoss{Claim: v.Claim, Reason: step.Reason, Pods: displaced}.Count(c.Metrics)
	if step.Phase == lifecycle.Created || step.Phase == lifecycle.Launched {
		// The claim's pods no longer have a planned node.
		c.Ledger.Forget(v.Claim.UID)
		c.Batch.AskNow(string(v.Claim.UID))
	}
	if step.Reason == lifecycle.ReasonNodeDeleted || step.Reason == lifecycle.ReasonInstanceGone {
		FindExternalTermination(ctx, c.Instances, v.Claim).Report(c.Events, c.Metrics, c.Log)
	}
	if step.Reason == lifecycle.ReasonOutdated {
		c.Events.Emit(v.Claim, kubeclient.ReasonNotJoining, outdatedText(c.Diagnoses, v.Claim))
	}
	if step.Reason == lifecycle.ReasonLaunchTimeout || step.Reason == lifecycle.ReasonRegistrationTimeout {
		c.Registrations.Note(v.Claim, false) // not joined
	}
	if step.Reason == lifecycle.ReasonRegistrationTimeout {
		c.LaunchBackoff.JoinFailed(c.Now.Now(), v.Claim.CreationTimestamp.Time, pool, "the last was "+v.Claim.Status.ProviderID)
		c.Events.Emit(v.Claim, kubeclient.ReasonNotJoining, "The instance "+v.Claim.Status.ProviderID+" has not joined the cluster within "+
			lifecycle.RegistrationTimeout.String()+" and is terminated")
	}
	c.Log.Info("deleted NodeClaim", "NodeClaim", v.Claim.Name, "nodePool", pool, "reason", step.Reason, "phase", string(step.Phase),
		"Node", v.Claim.Status.NodeName, "providerID", v.Claim.Status.ProviderID)
	return nil
}

func whyLate(diagnoses *diagnoser.Diagnoser, claim *karpv1.NodeClaim) string {
	why := "its instance has not joined the cluster within " + lifecycle.RegistrationTimeout.String()
	if _, cause, known := diagnoses.Verdict(claim); known {
		why += ": " + cause
	}
	return why
}

// setDeadline records when the claim's remaining pods will be deleted by force.
func (c *Reconciler) setDeadline(ctx context.Context, v View) (*karpv1.NodeClaim, error) {
	claim, err := c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) { nodestate.SetDeadline(claim, v.seen.Claim.LastMoment()) })
	if err != nil {
		return nil, err
	}
	at := claim.Annotations[karpv1.AnnotationTerminationTimestamp]
	c.Events.Emit(claim, kubeclient.ReasonTerminationGracePeriod, "All pods will be deleted at the latest at "+at)
	for _, node := range v.nodes {
		c.Events.Emit(node, kubeclient.ReasonTerminationGracePeriod, "All pods will be deleted at the latest at "+at)
	}
	return claim, nil
}

func (c *Reconciler) actOnLeavingNode(ctx context.Context, v View, step lifecycle.Step, now time.Time) error {
	node := v.node()
	switch step.Action {
	case lifecycle.DeleteNode:
		for _, n := range v.nodes {
			if err := c.Objects.Delete(ctx, n); err != nil {
				return err
			}
		}
		return nil
	case lifecycle.Cordon:
		_, err := c.Objects.PatchNode(ctx, node, nodestate.Cordon)
		return err
	case lifecycle.Evict:
		return c.evict(ctx, v, now)
	default: // lifecycle.RemoveNodeFinalizer
	}
	return releaseNode(ctx, c.Objects, c.Metrics, v.Claim.Labels[karpv1.LabelNodePool], node, now)
}

// dropStrays deletes Nodes that the instance no longer uses. Pods that were bound to these Nodes no longer run.
func (c *Reconciler) dropStrays(ctx context.Context, v View) error {
	for _, stray := range v.strays {
		if err := c.Objects.Delete(ctx, stray); err != nil {
			return err
		}
		if slices.Contains(stray.Finalizers, karpv1.FinalizerTermination) {
			_, err := c.Objects.PatchNode(ctx, stray, removeFinalizer)
			if err != nil && kubeclient.Classify(err) != kubeclient.Gone {
				return err
			}
		}
		c.Log.Info("deleted Node that no kubelet reports for", "Node", stray.Name, "NodeClaim", v.Claim.Name, "insteadOf", v.node().Name,
			"providerID", v.Claim.Status.ProviderID)
	}
	return nil
}

func (c *Reconciler) terminate(ctx context.Context, v View, now time.Time) (*karpv1.NodeClaim, error) {
	if v.instance == nil {
		return nil, errNoInstance
	}
	started := time.Now()
	err := c.Instances.Terminate(ctx, v.instance.ID, ec2.ByProviderID)
	observeCall(c.Metrics, "Delete", started, err)
	if err != nil && !awserr.Is(err, awserr.Gone) {
		c.Metrics.TerminateErrors.Inc()
		return nil, err
	}
	c.noteUntagged(v.Claim.UID, false, now)
	pool := v.Claim.Labels[karpv1.LabelNodePool]
	hasNode := v.node() != nil
	claim, err := c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		conditions := claim.StatusConditions()
		if hasNode {
			conditions.SetTrue(now, karpv1.ConditionDrained)
			conditions.SetTrue(now, karpv1.ConditionVolumesDetached)
			if v.seen.Node.Volumes > 0 {
				conditions.SetFalse(now, karpv1.ConditionVolumesDetached, karpv1.ReasonTerminationGracePeriodElapsed,
					"the termination grace period ended before all volumes were detached")
			}
		}
		conditions.SetTrue(now, karpv1.ConditionInstanceTerminating)
	})
	if err != nil {
		return nil, err
	}
	// Reconcile calls terminate until the instance is gone: only the first call is reported.
	if before, _ := v.Claim.StatusConditions().Find(karpv1.ConditionInstanceTerminating); before.Status != "True" {
		if hasNode {
			c.Metrics.Nodes.Drained.WithLabelValues(pool).Inc()
		}
		c.Log.Info("terminated instance", "NodeClaim", claim.Name, "nodePool", pool, "instance", v.instance.ID, "Node", claim.Status.NodeName)
	}
	return claim, nil
}

// release removes the claim's finalizer, after its Node and instance are gone.
func (c *Reconciler) release(ctx context.Context, v View, now time.Time) error {
	claim, pool := v.Claim, v.Claim.Labels[karpv1.LabelNodePool]
	if v.instance != nil && v.seen.Instance.Foreign && !v.instance.State.Ended() {
		c.Log.Warn("removed the finalizer of a NodeClaim whose instance has the tags of another owner; the instance is not terminated",
			"NodeClaim", claim.Name, "instance", v.instance.ID, "owner", string(v.instance.Owner))
	}
	_, err := c.Objects.PatchClaim(ctx, claim, func(claim *karpv1.NodeClaim) {
		claim.Finalizers = slices.DeleteFunc(slices.Clone(claim.Finalizers), func(f string) bool { return f == karpv1.FinalizerTermination })
	})
	if err != nil && kubeclient.Classify(err) != kubeclient.Gone {
		return err
	}
	c.attempts.forget(claim.UID)
	c.Offers.EndLaunch(claim)
	c.absences.Note(claim.UID, false, now)
	c.leaving.Note(claim.UID, false, now)
	c.noteUntagged(claim.UID, false, now)
	c.Replacements.forget(claim.UID)
	c.Ledger.Forget(claim.UID)
	seconds := now.Sub(claim.DeletionTimestamp.Time).Seconds()
	c.Metrics.Claims.Terminated.WithLabelValues(pool, claim.Labels[karpv1.LabelCapacityType], claim.Labels[corev1.LabelTopologyZone]).Inc()
	c.Metrics.Claims.Termination.WithLabelValues(pool).Observe(seconds)
	if terminating, ok := claim.StatusConditions().Find(karpv1.ConditionInstanceTerminating); ok {
		c.Metrics.InstanceEnd.WithLabelValues(pool).Observe(now.Sub(terminating.LastTransitionTime.Time).Seconds())
	}
	c.Log.Info("released NodeClaim", "NodeClaim", claim.Name, "nodePool", pool, "Node", claim.Status.NodeName, "seconds", seconds)
	return nil
}

// waitDraining writes to the claim's conditions what its deletion waits for.
func (c *Reconciler) waitDraining(ctx context.Context, v View, step lifecycle.Step, now time.Time) (*karpv1.NodeClaim, error) {
	if step.Reason == lifecycle.WaitUntagged {
		return c.quarantine(ctx, v, step, now)
	}
	if step.Reason != lifecycle.WaitVolumes {
		return v.Claim, nil
	}
	message := step.Detail + " volumes are still attached" // Detail is their number
	if node := v.node(); node != nil {
		c.Events.Emit(node, kubeclient.ReasonAwaitingVolumes, message)
	}
	return c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		conditions := claim.StatusConditions()
		conditions.SetTrue(now, karpv1.ConditionDrained)
		conditions.SetUnknown(now, karpv1.ConditionVolumesDetached, step.Reason, message)
	})
}

// evict evicts the pods that may leave the claim's Node now, and sets the condition Drained to Unknown.
func (c *Reconciler) evict(ctx context.Context, v View, now time.Time) error {
	node := v.node()
	e := eviction{evictor: c.Evictor, events: c.Events, metrics: c.Metrics, log: c.Log}
	reason := "Forceful Termination"
	if disruption, ok := v.Claim.StatusConditions().Find(karpv1.ConditionDisruptionReason); ok {
		reason = disruption.Reason
	}
	if err := e.run(ctx, node, v.drain, reason); err != nil {
		return err
	}
	message := strconv.Itoa(v.drain.Waiting) + " pods are waiting to be evicted"
	_, err := c.Objects.PatchClaim(ctx, v.Claim, func(claim *karpv1.NodeClaim) {
		claim.StatusConditions().SetUnknown(now, karpv1.ConditionDrained, karpv1.ReasonDraining, message)
	})
	return err
}
