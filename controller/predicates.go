package controller

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// nodeMatters lets those changes of a Node through that a claim could act on; a heartbeat is none.
func nodeMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok1 := e.ObjectOld.(*corev1.Node)
		node, ok2 := e.ObjectNew.(*corev1.Node)
		if !ok1 || !ok2 {
			return true
		}
		return isReady(old) != isReady(node) || ailmentOf(old) != ailmentOf(node) || old.Spec.ProviderID != node.Spec.ProviderID ||
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
