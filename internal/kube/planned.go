package kube

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// AnnotationPods on a NodeClaim names the pods that it was made for, as
// "namespace/name" with commas between them.
//
// Until the node is ready, and kube-scheduler has had its time to bind them, they
// count as if they ran on it. Otherwise every pass would pack them anew onto the
// machines on their way, and as those are just as large as they need to be, a
// packing that differs a little from the first would leave some pods over and buy
// one machine more. It is written on the claim, and not only remembered, so that a
// controller that was killed does not buy twice when it comes back.
const AnnotationPods = "joiner.sh/pods"

// maxPodsText bounds the annotation, in bytes, far below the 256 KiB that all
// annotations of an object may have. 737 pods, the most that EKS recommends on any
// machine, have about 100 bytes each.
const maxPodsText = 96 << 10

// podsText is the value of AnnotationPods. Pods that find no room in it are
// planned anew in each pass.
func podsText(pods []string) string {
	size := 0
	for i, pod := range pods {
		if size += len(pod) + 1; size > maxPodsText {
			pods = pods[:i]
			break
		}
	}
	return strings.Join(pods, ",")
}

// PodsOf returns the pods that the claim was made for, as "namespace/name".
func PodsOf(claim *karpv1.NodeClaim) []string {
	text := claim.Annotations[AnnotationPods]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// settled is how long kube-scheduler is given to bind, to a node that became
// ready, the pods that it was bought for. What is still pending then is planned
// anew: kube-scheduler must see something that we do not, or has given the room to
// other pods. Its own back-off between two looks at a pod is 10 seconds at most.
const settled = 12 * time.Second

// awaited says until when the pods that a claim was made for count as its own.
type awaited struct {
	pods  bool      // there are some
	until time.Time // zero: until the claim has changed
}

func (a awaited) at(now time.Time) bool { return a.pods && (a.until.IsZero() || !now.After(a.until)) }

func awaitedBy(claim *karpv1.NodeClaim) awaited {
	if claim.DeletionTimestamp != nil || claim.Annotations[AnnotationPods] == "" {
		return awaited{}
	}
	c, ok := claim.StatusConditions().Find(karpv1.ConditionInitialized)
	if !ok || c.Status != metav1.ConditionTrue {
		return awaited{pods: true}
	}
	return awaited{pods: true, until: c.LastTransitionTime.Add(settled)}
}

// hasRoomFor reports whether the node still has room for a pod that it was bought for. kube-scheduler does not know which pod was
// planned for which of the nodes that come, and gives the room of one that is ready to any pod that fits. Whose room is gone must be
// planned for anew at once: often it is the node of the other that has room now, which would look empty and be removed. All pods
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
		for id := range strings.SplitSeq(n.claim.Annotations[AnnotationPods], ",") {
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
