package conversion

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// DefaultRequests sets missing requests to the limits, as the API server does for pods but not for templates. It
// changes spec.
func DefaultRequests(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].Resources.Requests = requestsFor(list[i].Resources.Requests, list[i].Resources.Limits)
		}
	}
	podLevel := spec.Resources
	if podLevel == nil || len(podLevel.Limits) == 0 {
		return
	}
	// At pod level, the requests of containers take precedence over the limits of the pod.
	podLevel.Requests = maps.Clone(podLevel.Requests)
	for name, limit := range podLevel.Limits {
		if _, ok := podLevel.Requests[name]; ok || isRequested(spec, name) {
			continue
		}
		if podLevel.Requests == nil {
			podLevel.Requests = corev1.ResourceList{}
		}
		podLevel.Requests[name] = limit
	}
}

// requestsFor returns the requests, and the limits of the resources without a request.
func requestsFor(requests, limits corev1.ResourceList) corev1.ResourceList {
	if len(limits) == 0 {
		return requests
	}
	out := maps.Clone(limits)
	maps.Copy(out, requests)
	return out
}

func isRequested(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if _, ok := list[i].Resources.Requests[name]; ok {
				return true
			}
		}
	}
	return false
}
