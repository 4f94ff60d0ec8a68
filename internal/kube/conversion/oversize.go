package conversion

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxRules is how many bytes of rules a pod may have: what of it says where it may run, beside which pods, and with how much.
	// Ordinary pods have less than 2 KiB, and an API server takes 1.5 MiB, which are ten times as much when decoded: pods of one
	// namespace would fill the memory of the controller.
	maxRules = 64 << 10
	// maxAnnotation is how long the value of a pod's annotation may be that is kept. Those that are read have a few characters.
	maxAnnotation = 1 << 10
	// containerSize is what a container counts for besides what it says: kept apart, each takes that and more.
	containerSize = 256
	// volumeSize is what a volume with a claim counts for besides its names.
	volumeSize = 64
	// maxResources is how many resources of an oversized pod are kept. No node has as many.
	maxResources = 64
	// AnnotationOversized is added to the controller's own copy of a pod whose rules were dropped, and says how many bytes they had.
	// It is never written to the cluster, and ignored there.
	AnnotationOversized = "joiner.sh/oversized"
)

// oversized says why the pod is too large to be planned for; empty for nearly all pods.
func oversized(pod *corev1.Pod) string {
	size := rulesSize(pod)
	if was, err := strconv.Atoi(pod.Annotations[AnnotationOversized]); err == nil {
		size = max(size, was)
	}
	if size <= maxRules {
		return ""
	}
	return fmt.Sprintf("its labels, affinity, tolerations, spread constraints, volumes and containers take %d KiB, and only pods of up to %d KiB are planned for",
		size>>10, maxRules>>10)
}

// rulesSize returns the bytes of the pod's rules and containers, about as they are sent.
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

// trimAnnotations drops long values, and what only Trim may write.
func trimAnnotations(pod *corev1.Pod) {
	for key, value := range pod.Annotations {
		if len(value) > maxAnnotation || key == AnnotationOversized {
			delete(pod.Annotations, key)
		}
	}
	if textSize(pod.Annotations) > maxRules {
		pod.Annotations = nil // tens of thousands of short ones
	}
}

// trimRules drops the rules of a pod that has too many, and notes that. What it takes of a node is kept, and who owns it.
func trimRules(pod *corev1.Pod) {
	size := rulesSize(pod)
	if size <= maxRules {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[AnnotationOversized] = strconv.Itoa(size)
	spec := &pod.Spec
	spec.Affinity, spec.TopologySpreadConstraints, spec.Tolerations, spec.NodeSelector, spec.ResourceClaims = nil, nil, nil, nil, nil
	if len(spec.SchedulingGates) > 1 {
		spec.SchedulingGates = append([]corev1.PodSchedulingGate(nil), spec.SchedulingGates[0])
	}
	if textSize(pod.Labels) > maxRules/4 {
		pod.Labels = nil
	}
	if len(pod.OwnerReferences) > 1 {
		pod.OwnerReferences = controllerOnly(&pod.ObjectMeta)
	}
	if len(spec.Volumes) > maxResources {
		spec.Volumes = nil // no node can attach as many
	}
	trimWhole(spec)
	mergeContainers(pod)
	if len(spec.Overhead) > maxResources {
		spec.Overhead = nil // no RuntimeClass has as many
	}
}

// mergeContainers leaves one container that asks for what all ask for together, initContainers included: as much as the pod takes, or more.
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
