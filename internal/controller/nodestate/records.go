package nodestate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Records has the facts that disruption needs in addition to a snapshot. Names are those in the snapshot.
type Records struct {
	Policies map[string]disruption.Policy    // by pool
	Claims   map[string]*karpv1.NodeClaim    // NodeClaims by name
	quiet    map[string]time.Time            // by claim: the result of QuietSince
	ready    map[string]bool                 // by Node: whether it is ready
	keep     map[string]string               // by Node: the annotation that forbids its disruption
	holds    map[string]snapshot.BlockingPod // by Node: the pod that blocks its disruption
	costs    map[string]float64              // by Node: the cost of evicting its pods
	Nodes    map[string]bool                 // names of all Nodes
}

// ReadRecords returns the records at now. paused is the global pause, which applies to each pool.
func ReadRecords(o snapshot.Objects, watch *PodWatch, paused loop.PauseState, now time.Time) Records {
	r := Records{
		Policies: PoliciesOf(o, paused, now), Claims: map[string]*karpv1.NodeClaim{}, quiet: map[string]time.Time{},
		ready: map[string]bool{}, keep: KeptNodes(o), Nodes: map[string]bool{}, costs: map[string]float64{},
		holds: o.BlockingPods(now),
	}
	for _, claim := range o.Claims {
		if !IsServed(claim.Spec.NodeClassRef) {
			continue // another controller serves the claim
		}
		r.Claims[claim.Name] = claim
		r.quiet[claim.Name] = QuietSince(claim, watch.LastPodEvent(claim.Status.NodeName))
	}
	for _, node := range o.Nodes {
		r.Nodes[node.Name], r.ready[node.Name] = true, IsReady(node)
	}
	for _, pod := range o.Pods {
		if pod.Spec.NodeName != "" {
			r.costs[pod.Spec.NodeName] += snapshot.EvictionCost(pod)
		}
	}
	return r
}

// PoliciesOf returns the disruption policies of the served pools by name, with the global pause applied to each.
func PoliciesOf(o snapshot.Objects, paused loop.PauseState, now time.Time) map[string]disruption.Policy {
	out := map[string]disruption.Policy{}
	for _, pool := range o.Pools {
		if IsServed(pool.Spec.Template.Spec.NodeClassRef) && pool.DeletionTimestamp == nil {
			out[pool.Name] = paused.ApplyTo(PolicyOf(pool, now))
		}
	}
	return out
}

// KeptNodes returns, by Node name, the annotation that forbids the disruption of the Node.
func KeptNodes(o snapshot.Objects) map[string]string {
	out := map[string]string{}
	for _, claim := range o.Claims {
		if IsServed(claim.Spec.NodeClassRef) && claim.Annotations[karpv1.AnnotationDoNotDisrupt] == "true" && claim.Status.NodeName != "" {
			out[claim.Status.NodeName] = "the annotation " + karpv1.AnnotationDoNotDisrupt + " of the NodeClaim"
		}
	}
	for _, node := range o.Nodes {
		if node.Annotations[karpv1.AnnotationDoNotDisrupt] == "true" {
			out[node.Name] = "the annotation " + karpv1.AnnotationDoNotDisrupt + " of the Node"
		}
	}
	return out
}

// ForNodes returns, by node name, the facts that disruption needs about each node in the snapshot that has a NodeClaim.
func (r Records) ForNodes(s cluster.Snapshot) map[string]disruption.Record {
	out := map[string]disruption.Record{}
	for _, n := range s.Nodes {
		if r.Claims[n.Claim] == nil {
			continue
		}
		record := disruption.Record{
			LastPodEvent: r.quiet[n.Claim], Ready: r.ready[n.Name], Keep: r.keep[n.Name], Cost: r.costs[n.Name],
			HasDrainDeadline: r.Claims[n.Claim].Spec.TerminationGracePeriod != nil,
		}
		if hold, ok := r.holds[n.Name]; ok {
			record.Blocked, record.BlockedUntil = hold.String(), hold.Until
		}
		out[n.Name] = record
	}
	return out
}

// QuietSince returns since when no pod has come to the claim's node or left it. It is the latest of three times: the
// claim's lastPodEventTime, lastPodEvent, and the initialization of the node. lastPodEvent is the result of
// PodWatch.LastPodEvent.
func QuietSince(claim *karpv1.NodeClaim, lastPodEvent time.Time) time.Time {
	since := claim.Status.LastPodEventTime.Time
	if lastPodEvent.After(since) {
		since = lastPodEvent
	}
	if initialized, ok := claim.StatusConditions().Find(karpv1.ConditionInitialized); ok && initialized.LastTransitionTime.Time.After(since) {
		since = initialized.LastTransitionTime.Time
	}
	return since
}

// DisruptionReason returns the condition that records why a node is disrupted.
func DisruptionReason(reason disruption.Reason) metav1.Condition {
	return metav1.Condition{
		Type: karpv1.ConditionDisruptionReason, Status: metav1.ConditionStatus(corev1.ConditionTrue), Reason: string(reason),
	}
}
