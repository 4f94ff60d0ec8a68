package conversion

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// fargateScheduler places the pods of Fargate profiles. They never run on EC2.
const fargateScheduler = "fargate-scheduler"

// Provisionable reports whether kube-scheduler has given up on the pod, so that
// only another node can help: it is pending, tried, bound to no node, and would
// not simply appear on any new node as a DaemonSet's pod does. Pods behind a scheduling
// gate have not been tried. For one that is nominated, see IsNominated.
func Provisionable(pod *corev1.Pod) bool {
	return NeedsNode(pod) && WasTried(pod)
}

// IsNominated reports whether kube-scheduler holds room on a node for the pending pod: it evicts others there,
// or is about to bind it. Whether the node has room is checked by nodeView.welcomes. kube-scheduler
// clears a failed nomination when it tries the pod again, which may be minutes later.
func IsNominated(pod *corev1.Pod) bool { return NeedsNode(pod) && pod.Status.NominatedNodeName != "" }

// NeedsNode reports whether the pod needs a node and may be given one.
func NeedsNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil &&
		len(pod.Spec.SchedulingGates) == 0 && pod.Spec.SchedulerName != fargateScheduler &&
		!IsFinished(pod) && !IsDaemonPod(pod) && !IsStatic(pod)
}

// WasTried reports whether kube-scheduler has tried the pod and set its condition PodScheduled to false.
func WasTried(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// IsFinished reports whether the pod has ended and holds nothing any more.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsDaemonPod reports whether the pod belongs to a DaemonSet.
func IsDaemonPod(pod *corev1.Pod) bool { return isOwnedBy(pod, "DaemonSet") }

// IsStatic reports whether the pod is the mirror of one that a kubelet runs on
// its own account: it comes and goes with its node.
func IsStatic(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || isOwnedBy(pod, "Node")
}

func isOwnedBy(pod *corev1.Pod, kind string) bool {
	for i := range pod.OwnerReferences {
		if pod.OwnerReferences[i].Kind == kind {
			return true
		}
	}
	return false
}

// IsProtected reports whether the pod's annotation karpenter.sh/do-not-disrupt
// holds at now: "true", or a duration that counts from the pod's start. A value
// that is neither protects nothing.
func IsProtected(pod *corev1.Pod, now time.Time) bool {
	text, ok := pod.Annotations[karpv1.AnnotationDoNotDisrupt]
	if !ok {
		return false
	}
	if text == "true" {
		return true
	}
	span, err := time.ParseDuration(text)
	if err != nil || span <= 0 {
		return false
	}
	return pod.Status.StartTime == nil || now.Before(pod.Status.StartTime.Add(span))
}

// NeedsPlace reports whether the bound pod would need another node if its own
// went: it runs, and its like would not come by itself. A pod that is ending
// makes room for its successor only if it must end first, as a StatefulSet's must.
func NeedsPlace(pod *corev1.Pod) bool {
	return !IsFinished(pod) && !IsDaemonPod(pod) && !IsStatic(pod) &&
		(pod.DeletionTimestamp == nil || isOwnedBy(pod, "StatefulSet"))
}

// PodValue returns the pod as the engine sees it. Demands that cannot be read make
// it Unplannable; all that can be read is there nevertheless.
func PodValue(pod *corev1.Pod, around References) cluster.Pod {
	out := cluster.Pod{
		Namespace:   pod.Namespace,
		Name:        pod.Name,
		UID:         string(pod.UID),
		Owner:       ownerOf(pod),
		Labels:      pod.Labels,
		Requests:    Requests(pod),
		Tolerations: Tolerations(pod.Spec.Tolerations),
		HostPorts:   HostPorts(&pod.Spec),
		Priority:    Priority(pod),
		Created:     pod.CreationTimestamp.Time,
	}
	if all := around.Volumes.Attachments(pod); len(all) > 0 {
		out.Requests = AddAttachments(out.Requests, all, all)
	}
	out.Volumes = around.Volumes.sharable(pod)
	if !around.IgnorePreferences {
		out.Preferred = preferred(&pod.Spec)
	}
	others := topologyOf(pod, around)
	out.Spread, out.Affinity, out.AntiAffinity = others.spread, others.near, others.apart
	out.Required, out.Unplannable = required(&pod.Spec)
	if out.Unplannable == "" {
		own := out.Required
		out.Required, out.Unplannable = around.Volumes.places(pod, own)
		out.Spread = beyondVolumes(out.Spread, own, out.Required)
	}
	out.Unplannable = sentence(cmp.Or(oversized(pod), absurd(pod), out.Unplannable, others.wrong, devices(&pod.Spec)))
	return out
}

// sentence makes one line, of bounded length, of a text with names in it that may be anything.
func sentence(text string) string {
	const most = 1000
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return OneLine(text)
}

// devices says that the pod asks for devices in the way that this version cannot plan for.
func devices(spec *corev1.PodSpec) string {
	if len(spec.ResourceClaims) == 0 {
		return ""
	}
	return fmt.Sprintf("it asks for devices by resource claim %s, which this version does not plan for yet",
		spec.ResourceClaims[0].Name)
}

// ownerOf is the pod's controller as "ReplicaSet/web-5d4f", empty if it has none.
func ownerOf(pod *corev1.Pod) string {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return ""
	}
	return ref.Kind + "/" + ref.Name
}

// Priorities of the classes that every cluster has. The API server writes the
// number on the pod; a manifest has the name only.
const (
	priorityClusterCritical = 2_000_000_000
	priorityNodeCritical    = 2_000_001_000
)

// Priority returns the priority of the pod; without a number, that of its PriorityClass if Kubernetes defines it.
func Priority(pod *corev1.Pod) int32 {
	switch {
	case pod.Spec.Priority != nil:
		return *pod.Spec.Priority
	case pod.Spec.PriorityClassName == "system-cluster-critical":
		return priorityClusterCritical
	case pod.Spec.PriorityClassName == "system-node-critical":
		return priorityNodeCritical
	}
	return 0
}
