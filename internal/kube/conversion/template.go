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
	whole := spec.Resources
	if whole == nil || len(whole.Limits) == 0 {
		return
	}
	// At pod level, the requests of containers take precedence over the limits of the pod.
	whole.Requests = maps.Clone(whole.Requests)
	for name, limit := range whole.Limits {
		if _, ok := whole.Requests[name]; ok || isAsked(spec, name) {
			continue
		}
		if whole.Requests == nil {
			whole.Requests = corev1.ResourceList{}
		}
		whole.Requests[name] = limit
	}
}

func requestsFor(requests, limits corev1.ResourceList) corev1.ResourceList {
	if len(limits) == 0 {
		return requests
	}
	out := maps.Clone(limits)
	maps.Copy(out, requests)
	return out
}

func isAsked(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if _, ok := list[i].Resources.Requests[name]; ok {
				return true
			}
		}
	}
	return false
}
