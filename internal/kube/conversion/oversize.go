package conversion

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxRulesSize is the maximum size in bytes of a pod's rules: its labels, placement constraints, volumes and
	// containers. Ordinary pods have less than 2 KiB. The API server accepts pods of 1.5 MiB, which take ten times as
	// much memory when decoded. Without the maximum, the pods of one namespace could fill the controller's memory.
	maxRulesSize = 64 << 10
	// maxAnnotationSize is the maximum length in bytes of an annotation that the cache keeps. The annotations that
	// Joiner reads are a few characters long.
	maxAnnotationSize = 1 << 10
	// containerSize is what rulesSize adds for each container and each overhead resource, in bytes, besides its fields.
	containerSize = 256
	// volumeSize is what rulesSize adds for each volume with a claim, in bytes, besides the names.
	volumeSize = 64
	// maxResources is the maximum number of resources, and of volumes, that are kept for an oversized pod. No node has
	// as many.
	maxResources = 64
	// AnnotationOversized marks, in the controller's cache only, a pod whose rules were too large to keep, or a
	// PodDisruptionBudget whose selector was too large. Its value is the dropped size in bytes. The controller never
	// sets the annotation in the cluster, and ignores a value that a user sets there.
	AnnotationOversized = "joiner.sh/oversized"
)

// oversizeReason returns why the pod is too large to be planned for; empty if it is not. AnnotationOversized has the
// size of the rules that Trim dropped.
func oversizeReason(pod *corev1.Pod) string {
	size := rulesSize(pod)
	if recorded, err := strconv.Atoi(pod.Annotations[AnnotationOversized]); err == nil {
		size = max(size, recorded)
	}
	if size <= maxRulesSize {
		return ""
	}
	return fmt.Sprintf("its labels, affinity, tolerations, spread constraints, volumes and containers take %d KiB, and only pods of up to %d KiB are planned for",
		size>>10, maxRulesSize>>10)
}

// rulesSize returns the approximate size of the pod's rules and containers in the API's encoding, in bytes.
func rulesSize(pod *corev1.Pod) int {
	spec := &pod.Spec
	size := textSize(pod.Labels) + textSize(spec.NodeSelector)
	if spec.Affinity != nil {
		size += spec.Affinity.Size()
	}
	for i := range spec.TopologySpreadConstraints {
		size += spec.TopologySpreadConstraints[i].Size()
	}
	for i := range spec.Tolerations {
		size += spec.Tolerations[i].Size()
	}
	for i := range spec.SchedulingGates {
		size += spec.SchedulingGates[i].Size()
	}
	for i := range spec.ResourceClaims {
		size += spec.ResourceClaims[i].Size()
	}
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			size += containerSize + len(list[i].Name) + list[i].Resources.Size()
			for j := range list[i].Ports {
				size += list[i].Ports[j].Size()
			}
		}
	}
	if spec.Resources != nil {
		size += spec.Resources.Size()
	}
	for name := range spec.Overhead {
		size += containerSize + len(name)
	}
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.PersistentVolumeClaim != nil {
			size += volumeSize + len(v.Name) + len(v.PersistentVolumeClaim.ClaimName)
		} else if v.Ephemeral != nil {
			size += volumeSize + len(v.Name)
		}
	}
	for i := range pod.OwnerReferences {
		size += pod.OwnerReferences[i].Size()
	}
	return size
}

func textSize(texts map[string]string) int {
	size := 0
	for k, v := range texts {
		size += len(k) + len(v)
	}
	return size
}

// trimAnnotations drops annotations with long values, and AnnotationOversized, which only Trim may set.
func trimAnnotations(pod *corev1.Pod) {
	for key, value := range pod.Annotations {
		if len(value) > maxAnnotationSize || key == AnnotationOversized {
			delete(pod.Annotations, key)
		}
	}
	if textSize(pod.Annotations) > maxRulesSize {
		pod.Annotations = nil // too many short annotations
	}
}

// trimRules drops the rules of an oversized pod, and records their size in an annotation. It keeps the requests and the
// owner.
func trimRules(pod *corev1.Pod) {
	size := rulesSize(pod)
	if size <= maxRulesSize {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[AnnotationOversized] = strconv.Itoa(size)
	spec := &pod.Spec
	spec.Affinity, spec.TopologySpreadConstraints, spec.Tolerations, spec.NodeSelector, spec.ResourceClaims = nil, nil, nil, nil, nil
	if len(spec.SchedulingGates) > 1 { // one gate suffices for NeedsNode
		spec.SchedulingGates = append([]corev1.PodSchedulingGate(nil), spec.SchedulingGates[0])
	}
	// Labels that are not the cause of the size stay, because selectors need them.
	if textSize(pod.Labels) > maxRulesSize/4 {
		pod.Labels = nil
	}
	if len(pod.OwnerReferences) > 1 {
		pod.OwnerReferences = controllerOnly(&pod.ObjectMeta)
	}
	if len(spec.Volumes) > maxResources {
		spec.Volumes = nil // no node can attach as many
	}
	trimPodLevelRequests(spec)
	mergeContainers(pod)
	if len(spec.Overhead) > maxResources {
		spec.Overhead = nil // no RuntimeClass has as many
	}
}

// mergeContainers replaces all containers, including init containers, by one container with the sum of their requests.
// Only cpu, memory and maxResources resources are kept. For these, the sum is at least what kube-scheduler counts.
func mergeContainers(pod *corev1.Pod) {
	requests := corev1.ResourceList{}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for name, quantity := range list[i].Resources.Requests {
				if _, known := requests[name]; !known && len(requests) >= maxResources && name != corev1.ResourceCPU && name != corev1.ResourceMemory {
					continue
				}
				sum := requests[name]
				sum.Add(quantity)
				requests[name] = sum
			}
		}
	}
	pod.Spec.Containers = []corev1.Container{{Name: "all", Resources: corev1.ResourceRequirements{Requests: requests}}}
	pod.Spec.InitContainers, pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = nil, nil, nil
}
