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

// fargateScheduler schedules the pods of Fargate profiles. They never run on EC2.
const fargateScheduler = "fargate-scheduler"

// Provisionable reports whether the pod needs a node and kube-scheduler has tried and found none. It is false for a pod
// with a scheduling gate, which kube-scheduler does not try. It is also false for a DaemonSet pod, because every new
// node gets a pod of the DaemonSet. For a nominated pod see IsNominated.
func Provisionable(pod *corev1.Pod) bool {
	return NeedsNode(pod) && WasTried(pod)
}

// IsNominated reports whether kube-scheduler has nominated a node for the pending pod: kube-scheduler evicts other pods
// there, or is about to bind the pod. Package snapshot checks whether the node accepts pods. kube-scheduler clears a
// failed nomination when it tries the pod again, which may be minutes later.
func IsNominated(pod *corev1.Pod) bool { return NeedsNode(pod) && pod.Status.NominatedNodeName != "" }

// NeedsNode reports whether the pod needs a node and Joiner may launch one for it.
func NeedsNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil &&
		len(pod.Spec.SchedulingGates) == 0 && pod.Spec.SchedulerName != fargateScheduler &&
		!IsFinished(pod) && !IsDaemonPod(pod) && !IsStatic(pod)
}

// WasTried reports whether kube-scheduler has tried the pod and found no node for it: its condition PodScheduled is
// false with the reason Unschedulable.
func WasTried(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// IsFinished reports whether the pod has ended and uses no resources any more.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsDaemonPod reports whether the pod belongs to a DaemonSet.
func IsDaemonPod(pod *corev1.Pod) bool { return isOwnedBy(pod, "DaemonSet") }

// IsStatic reports whether the pod is the mirror of a static pod, which a kubelet runs without the API server. A mirror
// exists exactly as long as its node.
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

// IsProtected reports whether the pod's annotation karpenter.sh/do-not-disrupt protects the pod at the time now. The
// value is "true", or a duration from the pod's start; any other value has no effect. A duration also protects a pod
// that has not started.
func IsProtected(pod *corev1.Pod, now time.Time) bool {
	text, ok := pod.Annotations[karpv1.AnnotationDoNotDisrupt]
	if !ok {
		return false
	}
	if text == "true" {
		return true
	}
	duration, err := time.ParseDuration(text)
	if err != nil || duration <= 0 {
		return false
	}
	return pod.Status.StartTime == nil || now.Before(pod.Status.StartTime.Add(duration))
}

// NeedsPlace reports whether the bound pod would need another node if its node terminated. DaemonSet pods and static
// pods do not. A terminating pod needs another node only if it belongs to a StatefulSet, which creates a successor when
// the pod has ended; other controllers create it earlier.
func NeedsPlace(pod *corev1.Pod) bool {
	return !IsFinished(pod) && !IsDaemonPod(pod) && !IsStatic(pod) &&
		(pod.DeletionTimestamp == nil || isOwnedBy(pod, "StatefulSet"))
}

// PodValue returns the pod as the solver sees it. If Joiner cannot plan the pod, Unplannable says why; the other fields
// are set nevertheless.
func PodValue(pod *corev1.Pod, refs References) cluster.Pod {
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
	if attachments := refs.Volumes.Attachments(pod); len(attachments) > 0 {
		out.Requests = AddAttachments(out.Requests, attachments, attachments)
	}
	out.Volumes = refs.Volumes.sharableClaims(pod)
	if !refs.IgnorePreferences {
		out.Preferred = preferences(&pod.Spec)
	}
	constraints := topologyOf(pod, refs)
	out.Spread, out.Affinity, out.AntiAffinity = constraints.spread, constraints.affinity, constraints.antiAffinity
	out.Required, out.Unplannable = requiredAlternatives(&pod.Spec)
	if out.Unplannable == "" {
		affinity := out.Required
		out.Required, out.Unplannable = refs.Volumes.restrict(pod, affinity)
		out.Spread = adaptSpreads(out.Spread, affinity, out.Required)
	}
	out.Unplannable = oneBoundedLine(cmp.Or(oversizeReason(pod), impossibleRequest(pod), out.Unplannable, constraints.problem,
		deviceProblem(&pod.Spec)))
	return out
}

// oneBoundedLine returns the text, which may quote user input, as one line of bounded length.
func oneBoundedLine(text string) string {
	const maxBytes = 1000
	if len(text) > maxBytes {
		text = strings.ToValidUTF8(text[:maxBytes], "") + "…"
	}
	return OneLine(text)
}

// deviceProblem returns a sentence if the pod has resource claims (DRA), which this version does not plan for; empty
// otherwise.
func deviceProblem(spec *corev1.PodSpec) string {
	if len(spec.ResourceClaims) == 0 {
		return ""
	}
	return fmt.Sprintf("it asks for devices by resource claim %s, which this version does not plan for yet",
		spec.ResourceClaims[0].Name)
}

// ownerOf returns the pod's controller as "ReplicaSet/web-5d4f"; empty if it has none.
func ownerOf(pod *corev1.Pod) string {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return ""
	}
	return ref.Kind + "/" + ref.Name
}

// Priorities of the PriorityClasses that every cluster has. The API server sets the number on the pod; a manifest has
// only the name of the class.
const (
	priorityClusterCritical = 2_000_000_000
	priorityNodeCritical    = 2_000_001_000
)

// Priority returns the priority of the pod: its number, or else the priority of its PriorityClass. It knows only the
// two classes that every cluster has; for any other class, or without a class, it returns 0.
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
