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

// bindTimeout is how long kube-scheduler has, after a node became ready, to bind the pods that the node was launched
// for. Pods that are still pending after that are planned again. Either kube-scheduler sees an obstacle that the plan
// does not see, or it has bound other pods to the node. The back-off of kube-scheduler for a pod is at most 10 seconds.
const bindTimeout = 12 * time.Second

// planPeriod is the time during which the pods that a claim was created for are counted on its node.
type planPeriod struct {
	hasPods bool      // false: the period is empty, because no pod is counted
	until   time.Time // end of the period; zero: not known yet
}

func (p planPeriod) isActive(now time.Time) bool {
	return p.hasPods && (p.until.IsZero() || !now.After(p.until))
}

// planPeriodOf returns the plan period of the claim: until bindTimeout after its node became ready. The period is empty
// if the claim names no pods or is being deleted.
func planPeriodOf(claim *karpv1.NodeClaim) planPeriod {
	if claim.DeletionTimestamp != nil || claim.Annotations[conversion.AnnotationPods] == "" {
		return planPeriod{}
	}
	c, ok := claim.StatusConditions().Find(karpv1.ConditionInitialized)
	if !ok || c.Status != metav1.ConditionTrue {
		return planPeriod{hasPods: true}
	}
	return planPeriod{hasPods: true, until: c.LastTransitionTime.Add(bindTimeout)}
}

// hasRoomFor reports whether the node still has room for a pod that it was launched for. kube-scheduler does not know
// the plan: it binds any pod that fits to a ready node. If another pod uses the planned room, the planned pod must get
// another node in the same snapshot, often the node that was launched for the other pod. Otherwise the other pod's
// node would seem empty and would be removed. Call hasRoomFor when all bound pods are counted. A node without movable
// pods still has the planned room.
func (n *nodeView) hasRoomFor(pod *cluster.Pod) bool {
	return !n.hasMovablePods || n.value.Requested.Add(pod.Requests).Fits(n.value.Allocatable)
}

// plannedNodes has for each planned pod the node that it is planned for, as an index into a list of nodes.
type plannedNodes map[types.NamespacedName]int

// plannedNodesAt returns the planned pods at the time now, each with its node in nodes.
func plannedNodesAt(nodes []*nodeView, now time.Time) plannedNodes {
	out := plannedNodes{}
	for i, n := range nodes {
		if n.value.Leaving || n.value.Cordoned() || !n.planPeriod.isActive(now) {
			continue // kube-scheduler will not bind the planned pods to this node, or had time to do so
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

func byAge(a, b *karpv1.NodeClaim) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// of returns the index in nodes of the node that the pod is planned for; false if there is none. A pod that is younger
// than the claim is not the planned pod, but another pod with its name.
func (p plannedNodes) of(pod *cluster.Pod, nodes []*nodeView) (int, bool) {
	i, ok := p[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	if !ok || pod.Created.After(nodes[i].value.Created) {
		return 0, false
	}
	return i, true
}
