package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// dependency is one or more objects, other than the pod, that the value of a pod is computed from.
type dependency struct {
	kind dependencyKind
	name string // see the constants of dependencyKind
}

type dependencyKind int8

const (
	onClaim      dependencyKind = iota // a volume claim, its volume and its storage class; name: "namespace/name" of the claim
	onNamespaces                       // the labels of all namespaces; name: empty
	onServices                         // the Services in the pod's namespace that select the pod; name: the namespace
	onOwner                            // the selector of the pod's controller; name: conversion.OwnerKey of the controller
)

func (s *podState) dependencies(pod *corev1.Pod) []dependency {
	var out []dependency
	for i := range pod.Spec.Volumes {
		if name := conversion.ClaimName(pod, &pod.Spec.Volumes[i]); name != "" {
			out = append(out, dependency{onClaim, pod.Namespace + "/" + name})
		}
	}
	if selectsNamespaces(pod.Spec.Affinity) {
		out = append(out, dependency{kind: onNamespaces})
	}
	if s.references.DefaultSpread.IsZero() || len(pod.Spec.TopologySpreadConstraints) > 0 {
		return out
	}
	out = append(out, dependency{onServices, pod.Namespace})
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		out = append(out, dependency{onOwner, conversion.OwnerKey(pod.Namespace, ref.Kind, ref.Name)})
	}
	return out
}

// selectsNamespaces reports whether a term of the pod's affinity or anti-affinity selects namespaces by their labels.
func selectsNamespaces(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var required []corev1.PodAffinityTerm
	var preferred []corev1.WeightedPodAffinityTerm
	if a.PodAffinity != nil {
		required = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		preferred = a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if a.PodAntiAffinity != nil {
		required = slices.Concat(required, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		preferred = slices.Concat(preferred, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(required, func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil }) ||
		slices.ContainsFunc(preferred, func(t corev1.WeightedPodAffinityTerm) bool { return t.PodAffinityTerm.NamespaceSelector != nil })
}
