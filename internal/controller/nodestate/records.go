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
	Policies map[string]disruption.Policy // by pool
	Claims   map[string]*karpv1.NodeClaim // NodeClaims by name
	quiet    map[string]time.Time         // by claim: since when no pod has come or gone; see QuietSince
	ready    map[string]bool              // by Node: whether it is ready
	keep     map[string]string            // by Node: the annotation that forbids its disruption
	holds    map[string]snapshot.Hold     // by Node: the pod that blocks its disruption
	costs    map[string]float64           // by Node: the cost of evicting its pods
	Nodes    map[string]bool              // names of all Nodes
}

// ReadRecords returns the records at now. paused is the global pause; it applies to each pool.
func ReadRecords(o snapshot.Objects, watch *PodWatch, paused loop.PauseState, now time.Time) Records {
	b := Records{
		Policies: PoliciesOf(o, paused, now), Claims: map[string]*karpv1.NodeClaim{}, quiet: map[string]time.Time{},
		ready: map[string]bool{}, keep: KeptOf(o), Nodes: map[string]bool{}, costs: map[string]float64{},
		holds: o.Holds(now),
	}
	for _, claim := range o.Claims {
		if !IsServed(claim.Spec.NodeClassRef) {
			continue // another controller serves the claim
		}
		b.Claims[claim.Name] = claim
		b.quiet[claim.Name] = QuietSince(claim, watch.Touched(claim.Status.NodeName))
	}
	for _, node := range o.Nodes {
		b.Nodes[node.Name], b.ready[node.Name] = true, IsReady(node)
	}
	for _, pod := range o.Pods {
		if pod.Spec.NodeName != "" {
			b.costs[pod.Spec.NodeName] += snapshot.EvictionCost(pod)
		}
	}
	return b
}

// PoliciesOf returns the disruption policies of the served pools by name, with the global pause applied to each.
func PoliciesOf(o snapshot.Objects, paused loop.PauseState, now time.Time) map[string]disruption.Policy {
	out := map[string]disruption.Policy{}
	for _, pool := range o.Pools {
		if IsServed(pool.Spec.Template.Spec.NodeClassRef) && pool.DeletionTimestamp == nil {
			out[pool.Name] = paused.Over(PolicyOf(pool, now))
		}
	}
	return out
}

// KeptOf returns by Node name the annotation that forbids the disruption of the Node.
func KeptOf(o snapshot.Objects) map[string]string {
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

// Records returns the facts that disruption needs for each node in the snapshot that has a NodeClaim, by node name.
func (b Records) Records(s cluster.Snapshot) map[string]disruption.Record {
	out := map[string]disruption.Record{}
	for _, n := range s.Nodes {
		if b.Claims[n.Claim] == nil {
			continue
		}
		record := disruption.Record{
			Quiet: b.quiet[n.Claim], Ready: b.ready[n.Name], Keep: b.keep[n.Name], Cost: b.costs[n.Name],
			Bounded: b.Claims[n.Claim].Spec.TerminationGracePeriod != nil,
		}
		if hold, ok := b.holds[n.Name]; ok {
			record.Blocked, record.BlockedUntil = hold.String(), hold.Until
		}
		out[n.Name] = record
	}
	return out
}

// QuietSince returns since when no pod has come to the claim's node or left it. It is the latest of three times: the
// claim's lastPodEventTime, touched, and the initialization of the node.
func QuietSince(claim *karpv1.NodeClaim, touched time.Time) time.Time {
	since := claim.Status.LastPodEventTime.Time
	if touched.After(since) {
		since = touched
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
