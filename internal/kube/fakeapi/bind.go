package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// createSubResource binds a pod for the subresource "binding", as the API server does. The fake client of
// controller-runtime has the other subresources.
func createSubResource(
	ctx context.Context, server client.Client, name string, o, subResource client.Object, opts ...client.SubResourceCreateOption,
) error {
	binding, ok := subResource.(*corev1.Binding)
	if name != "binding" || !ok {
		return server.SubResource(name).Create(ctx, o, subResource, opts...)
	}
	pod := &corev1.Pod{}
	if err := server.Get(ctx, client.ObjectKeyFromObject(o), pod); err != nil {
		return err
	}
	conflict := ""
	switch {
	case binding.UID != "" && binding.UID != pod.UID:
		conflict = fmt.Sprintf("the UID is %s, not %s", pod.UID, binding.UID)
	case pod.DeletionTimestamp != nil:
		conflict = "the pod is being deleted"
	case pod.Spec.NodeName != "":
		conflict = "the pod is already assigned to node " + pod.Spec.NodeName
	}
	if conflict != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, pod.Name, errors.New(conflict))
	}
	pod.Spec.NodeName = binding.Target.Name
	isScheduled := func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled }
	pod.Status.Conditions = append(slices.DeleteFunc(pod.Status.Conditions, isScheduled),
		corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	return server.Update(ctx, pod)
}
