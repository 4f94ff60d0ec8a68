package writer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Bind binds the pod to the Node, as kube-scheduler does. It returns false if the pod is already gone or bound.
func (w *Writer) Bind(ctx context.Context, pod PodRef, node string) (bool, error) {
	binding := &corev1.Binding{
		// If another pod has the name now, the server answers Conflict.
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: types.UID(pod.UID)},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	err := w.Client.SubResource("binding").Create(ctx, pod.object(), binding)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("bind pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return true, nil
}
