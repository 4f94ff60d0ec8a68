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

// settled is how long kube-scheduler has, after a node became ready, to bind the pods that it was launched for. Pods that are still
// pending then are planned again: kube-scheduler sees an obstacle that the plan does not, or bound other pods there. Its own
// back-off for a pod is at most 10 seconds.
const settled = 12 * time.Second

// awaited says until when the pods that a claim was made for count as its own.
type awaited struct {
	pods  bool      // there are some
	until time.Time // zero: until the claim has changed
}

func (a awaited) at(now time.Time) bool { return a.pods && (a.until.IsZero() || !now.After(a.until)) }

func awaitedBy(claim *karpv1.NodeClaim) awaited {
	if claim.DeletionTimestamp != nil || claim.Annotations[conversion.AnnotationPods] == "" {
		return awaited{}
	}
	c, ok := claim.StatusConditions().Find(karpv1.ConditionInitialized)
	if !ok || c.Status != metav1.ConditionTrue {
		return awaited{pods: true}
	}
	return awaited{pods: true, until: c.LastTransitionTime.Add(settled)}
}

// hasRoomFor reports whether the node still has room for a pod that it was launched for. kube-scheduler does not know the plan, and
// binds any pod that fits to a node that is ready. A pod whose room is taken must be planned again immediately: often the node of the
// other pod has room now, which would otherwise look empty and be removed. All pods
// that are bound to the node must be counted; before there are any, the room is as it was planned.
func (n *nodeView) hasRoomFor(pod *cluster.Pod) bool {
	return !n.isShared || n.value.Requested.Add(pod.Requests).Fits(n.value.Allocatable)
}

// planned finds the node that a pod is planned for.
type planned map[types.NamespacedName]int // index into nodes, by pod

func plannedOn(nodes []*nodeView, now time.Time) planned {
	out := planned{}
	for i, n := range nodes {
		if n.value.Leaving || n.value.Cordoned() || !n.awaited.at(now) {
			continue // kube-scheduler will not bind them there
		}
		for id := range strings.SplitSeq(n.claim.Annotations[conversion.AnnotationPods], ",") {
			namespace, name, _ := strings.Cut(id, "/")
			pod := types.NamespacedName{Namespace: namespace, Name: name}
			// The newest claim is the one that counts, should there be several.
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

// of returns the node that the pod is planned for. A pod that is younger than
// the claim is another one that got the name since.
func (p planned) of(pod *cluster.Pod, nodes []*nodeView) (int, bool) {
	i, ok := p[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	if !ok || pod.Created.After(nodes[i].value.Created) {
		return 0, false
	}
	return i, true
}
