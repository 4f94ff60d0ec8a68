package nodestate

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// NodeMatters passes the changes of a Node that can affect its claim. It rejects updates that only report a heartbeat.
func NodeMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok1 := e.ObjectOld.(*corev1.Node)
		node, ok2 := e.ObjectNew.(*corev1.Node)
		if !ok1 || !ok2 {
			return true
		}
		return IsReady(old) != IsReady(node) || unhealthyCondition(old) != unhealthyCondition(node) ||
			old.Spec.ProviderID != node.Spec.ProviderID ||
			(old.DeletionTimestamp == nil) != (node.DeletionTimestamp == nil) ||
			old.Labels[karpv1.LabelExcludeFromLoadBalancers] != node.Labels[karpv1.LabelExcludeFromLoadBalancers] ||
			!reflect.DeepEqual(old.Spec.Taints, node.Spec.Taints) || !reflect.DeepEqual(old.Finalizers, node.Finalizers) ||
			!equality.Semantic.DeepEqual(old.Status.Allocatable, node.Status.Allocatable) ||
			!equality.Semantic.DeepEqual(old.Status.Addresses, node.Status.Addresses)
	}}
}

// OnlyDeletes passes deletions only.
func OnlyDeletes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// PoolMatters passes changes of a NodePool's spec and readiness.
func PoolMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok1 := e.ObjectOld.(*karpv1.NodePool)
		pool, ok2 := e.ObjectNew.(*karpv1.NodePool)
		return !ok1 || !ok2 || old.Generation != pool.Generation || old.StatusConditions().IsReady() != pool.StatusConditions().IsReady()
	}}
}

// ClassMatters passes changes of an EC2NodeClass's spec, its preflight mode, and the recorded results of its AMIs.
func ClassMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetAnnotations()[awsv1.AnnotationPreflight] != e.ObjectNew.GetAnnotations()[awsv1.AnnotationPreflight] ||
			e.ObjectOld.GetAnnotations()[kubeclient.AnnotationImages] != e.ObjectNew.GetAnnotations()[kubeclient.AnnotationImages]
	}}
}

// ClaimCountMatters passes changes that affect how many NodeClaims of a pool count as replicas: creations, deletions,
// replacements and moves.
func ClaimCountMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			e.ObjectOld.GetAnnotations()[AnnotationReplacing] != e.ObjectNew.GetAnnotations()[AnnotationReplacing] ||
			e.ObjectOld.GetAnnotations()[AnnotationMove] != e.ObjectNew.GetAnnotations()[AnnotationMove]
	}}
}
