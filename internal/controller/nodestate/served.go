package nodestate

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// IsServed reports whether ref names an EC2NodeClass. Objects with another class belong to the controller of another
// cloud provider.
func IsServed(ref *karpv1.NodeClassReference) bool {
	return ref != nil && ref.Group == awsv1.Group && ref.Kind == awsv1.Kind
}

// AnnotationInterrupted marks a NodeClaim whose instance AWS will interrupt. The value is the kind of the interruption
// message, a space, and the time when the controller processed the message (RFC 3339). After a restart, the new leader
// continues from the annotation.
const AnnotationInterrupted = "joiner.sh/interrupted"

// MinPlanNowInterval is the minimum time between two requests for an immediate plan.
const MinPlanNowInterval = time.Second

// IsOpen reports whether kube-scheduler may still bind pods to the Node.
func IsOpen(node *corev1.Node) bool {
	return node.DeletionTimestamp == nil && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == karpv1.TaintDisrupted && t.Effect == corev1.TaintEffectNoSchedule
	})
}

// Annotations of NodePools about drift.
const (
	// AnnotationDriftAllow on a NodePool is the hash of the mass drift that the user allows. The condition DriftHeld
	// shows the hash.
	AnnotationDriftAllow = "joiner.sh/drift-allow"
	// AnnotationDriftState on a NodePool is a hash of the resources that were found in AWS when the condition DriftHeld
	// was set.
	AnnotationDriftState = "joiner.sh/drift-state"
)

// NodesOf returns the Node that the claim was registered with. The result is empty before the registration.
func NodesOf(ctx context.Context, cluster loop.NodeReader, claim *karpv1.NodeClaim) ([]*corev1.Node, error) {
	nodes, err := cluster.NodesOf(ctx, claim.Status.ProviderID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(nodes, func(n *corev1.Node) bool { return !snapshot.IsNodeOf(claim, n) }), nil
}

// DeadlineOf returns when the pods of the claim will be deleted by force, as recorded on the claim. It is zero in three
// cases:
//   - No time is recorded.
//   - The time cannot be parsed. The controller replaces it.
//   - The time is more than deadlineStale before the claim's deletion. Such a time is from a repair that was aborted
//     because the node recovered. If the node is drained later for another reason, its pods get their full grace period.
func DeadlineOf(claim *karpv1.NodeClaim) time.Time {
	at, err := time.Parse(time.RFC3339, claim.Annotations[karpv1.AnnotationTerminationTimestamp])
	if err != nil || claim.DeletionTimestamp != nil && at.Before(claim.DeletionTimestamp.Add(-deadlineStale)) {
		return time.Time{}
	}
	return at
}

// deadlineStale is how far a valid deadline may precede the deletion of its claim. A repair writes the deadline and
// deletes the claim within seconds.
const deadlineStale = 5 * time.Minute

// SymptomsOf returns the conditions of the Node as input for node auto repair.
func SymptomsOf(node *corev1.Node) []lifecycle.Symptom {
	out := make([]lifecycle.Symptom, 0, len(node.Status.Conditions))
	for _, c := range node.Status.Conditions {
		out = append(out, lifecycle.Symptom{Condition: string(c.Type), Status: string(c.Status), Since: c.LastTransitionTime.Time})
	}
	return out
}

// unhealthyCondition returns the condition for which node auto repair replaces the Node; empty if the Node is healthy.
func unhealthyCondition(node *corev1.Node) string {
	return lifecycle.Diagnose(SymptomsOf(node)).Condition
}

// LifecycleClaimOf converts a NodeClaim to the input type of package lifecycle.
func LifecycleClaimOf(claim *karpv1.NodeClaim) lifecycle.Claim {
	conditions := claim.StatusConditions()
	out := lifecycle.Claim{
		Exists:      true,
		Finalizer:   slices.Contains(claim.Finalizers, karpv1.FinalizerTermination),
		Created:     claim.CreationTimestamp.Time,
		ExpireAfter: claim.Spec.ExpireAfter.Duration,
		Launched:    claim.Status.ProviderID != "",
		Registered:  conditions.IsTrue(karpv1.ConditionRegistered),
		Initialized: conditions.IsTrue(karpv1.ConditionInitialized),
	}
	if launched, ok := conditions.Find(karpv1.ConditionLaunched); ok && launched.Status == "True" {
		out.LaunchedAt = launched.LastTransitionTime.Time
	}
	if claim.DeletionTimestamp != nil {
		out.Deleted = claim.DeletionTimestamp.Time
	}
	if claim.Spec.TerminationGracePeriod != nil {
		out.Grace = &claim.Spec.TerminationGracePeriod.Duration
	}
	out.Deadline = DeadlineOf(claim)
	if since := ReplacingSince(claim); !since.IsZero() {
		out.Replacement = lifecycle.Replacement{State: lifecycle.ReplacementRequested, Since: since}
	}
	return out
}

// IsReady reports whether the condition Ready of the Node is True.
func IsReady(node *corev1.Node) bool { return Readiness(node) == corev1.ConditionTrue }

// Readiness returns the status of the Ready condition; empty if the Node does not have the condition yet.
func Readiness(node *corev1.Node) corev1.ConditionStatus {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return ""
}

// MaintainsReplicas reports whether this controller keeps the number of the pool's nodes at spec.replicas: the pool is
// static, served, and not being deleted.
func MaintainsReplicas(pool *karpv1.NodePool) bool {
	return pool.Spec.Replicas != nil && pool.DeletionTimestamp == nil && IsServed(pool.Spec.Template.Spec.NodeClassRef)
}

// NodeLimit returns the pool's limits.nodes, or nil if the pool has no such limit.
func NodeLimit(pool *karpv1.NodePool) *int {
	amount, ok := pool.Spec.Limits[karpv1.ResourceNodes]
	if !ok {
		return nil
	}
	n := int(min(max(amount.Value(), 0), 1<<30)) // fits in 32 bits
	return &n
}

// ReadyNodes returns the provider IDs of ready Nodes. If a NodeClaim has the provider ID of a Node, the Node counts only if
// it is the Node that the claim was registered with.
func ReadyNodes(ctx context.Context, reader client.Reader) (map[string]bool, error) {
	var claims karpv1.NodeClaimList
	if err := reader.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodeclaims: %w", err)
	}
	namesByID := map[string][]string{} // by provider ID: the names of Nodes in NodeClaims
	for _, c := range claims.Items {
		namesByID[c.Status.ProviderID] = append(namesByID[c.Status.ProviderID], c.Status.NodeName)
	}
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	out := map[string]bool{}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; node.Spec.ProviderID != "" && IsReady(node) {
			names, isClaimed := namesByID[node.Spec.ProviderID]
			out[node.Spec.ProviderID] = out[node.Spec.ProviderID] || !isClaimed || slices.Contains(names, node.Name)
		}
	}
	return out, nil
}
