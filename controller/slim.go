package controller

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// CacheOptions make informers keep only what somebody reads. Most of a pod is how its containers are run, and most of a
// Node is the list of its images; neither is of interest here.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: slim,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:  {Transform: slimPod},
			&corev1.Node{}: {Transform: slimNode},
		},
	}
}

// slim drops what the API server keeps for itself.
func slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
		if notes := o.GetAnnotations(); notes[corev1.LastAppliedConfigAnnotation] != "" {
			delete(notes, corev1.LastAppliedConfigAnnotation)
		}
	}
	return object, nil
}

func slimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	if _, err := slim(pod); err != nil {
		return nil, err
	}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			c := &list[i]
			list[i] = corev1.Container{
				Name: c.Name, Ports: c.Ports, Resources: c.Resources, ResizePolicy: c.ResizePolicy, RestartPolicy: c.RestartPolicy,
			}
		}
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			c := &list[i]
			list[i] = corev1.ContainerStatus{Name: c.Name, Ready: c.Ready, AllocatedResources: c.AllocatedResources, Resources: c.Resources}
		}
	}
	pod.Status.EphemeralContainerStatuses, pod.Spec.EphemeralContainers = nil, nil
	return pod, nil
}

func slimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	node.Status.Images, node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil, nil
	return slim(node)
}

// nodeMatters lets those changes of a Node through that a claim could act on; a heartbeat is none.
func nodeMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok1 := e.ObjectOld.(*corev1.Node)
		node, ok2 := e.ObjectNew.(*corev1.Node)
		if !ok1 || !ok2 {
			return true
		}
		return isReady(old) != isReady(node) || old.Spec.ProviderID != node.Spec.ProviderID ||
			(old.DeletionTimestamp == nil) != (node.DeletionTimestamp == nil) ||
			!reflect.DeepEqual(old.Spec.Taints, node.Spec.Taints) || !reflect.DeepEqual(old.Finalizers, node.Finalizers) ||
			!equality.Semantic.DeepEqual(old.Status.Allocatable, node.Status.Allocatable)
	}}
}

// onlyDeletes lets through that an object is gone.
func onlyDeletes() predicate.Predicate {
	no := func() bool { return false }
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return no() },
		UpdateFunc:  func(event.UpdateEvent) bool { return no() },
		GenericFunc: func(event.GenericEvent) bool { return no() },
	}
}
