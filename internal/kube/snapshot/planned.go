package snapshot

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// bindTimeout is how long kube-scheduler has, after a node became ready, to bind the pods that it was launched for.
// Pods that are still pending then are planned again: kube-scheduler sees an obstacle that the plan does not, or bound
// other pods there. The back-off of kube-scheduler for a pod is at most 10 seconds.
const bindTimeout = 12 * time.Second

// planPeriod is the time during which the pods that a claim was made for are counted on its node.
type planPeriod struct {
	pods  bool      // the claim names pods
	until time.Time // zero: until the claim changes
}

// isActive reports whether the pods are counted on the node at now.
func (p planPeriod) isActive(now time.Time) bool {
	return p.pods && (p.until.IsZero() || !now.After(p.until))
}

// planPeriodOf returns the period of the claim: until bindTimeout after its node became ready. It has no period if it
// names no pods or is being deleted.
func planPeriodOf(claim *karpv1.NodeClaim) planPeriod {
	if claim.DeletionTimestamp != nil || claim.Annotations[conversion.AnnotationPods] == "" {
		return planPeriod{}
	}
	c, ok := claim.StatusConditions().Find(karpv1.ConditionInitialized)
	if !ok || c.Status != metav1.ConditionTrue {
		return planPeriod{pods: true}
	}
	return planPeriod{pods: true, until: c.LastTransitionTime.Add(bindTimeout)}
}

// hasRoomFor reports whether the node still has room for a pod that it was launched for. kube-scheduler does not know
// the plan, and binds any pod that fits to a ready node. A pod whose room another pod uses must be planned again
// immediately: often the node that was launched for the other pod has room now. Otherwise that node would look empty
// and be removed. All bound pods must be counted before the call. A node without movable pods still has the planned
// room.
func (n *nodeView) hasRoomFor(pod *cluster.Pod) bool {
	return !n.isShared || n.value.Requested.Add(pod.Requests).Fits(n.value.Allocatable)
}

// planned maps a pod to the node that it is planned for, as an index into nodes.
type planned map[types.NamespacedName]int

// plannedOn returns the nodes that pods are planned for at now.
func plannedOn(nodes []*nodeView, now time.Time) planned {
	out := planned{}
	for i, n := range nodes {
		if n.value.Leaving || n.value.Cordoned() || !n.planPeriod.isActive(now) {
			continue // kube-scheduler will not bind the pods there
		}
		for id := range strings.SplitSeq(n.claim.Annotations[conversion.AnnotationPods], ",") {
			namespace, name, _ := strings.Cut(id, "/")
			pod := types.NamespacedName{Namespace: namespace, Name: name}
			// If several claims name the pod, the newest is used.
			if old, ok := out[pod]; !ok || byAge(nodes[old].claim, n.claim) < 0 {
				out[pod] = i
			}
		}
	}
	return out
}

// byAge sorts claims by creation, oldest first, then by name.
func byAge(a, b *karpv1.NodeClaim) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// of returns the node that the pod is planned for. A pod that is younger than the claim is another pod with the same
// name.
func (p planned) of(pod *cluster.Pod, nodes []*nodeView) (int, bool) {
	i, ok := p[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	if !ok || pod.Created.After(nodes[i].value.Created) {
		return 0, false
	}
	return i, true
}
