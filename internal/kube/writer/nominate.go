package writer

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Nominate writes the Node's name to the pod's status.nominatedNodeName. kube-scheduler then tries that node first.
// While it schedules pods of the same or a lower priority, it counts the pod on that node. It is no error if the
// pod is already gone or bound.
func (w *Writer) Nominate(ctx context.Context, pod PodRef, node string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]string{"uid": pod.UID}, // if another pod has the name now, the server answers Conflict
		"status":   map[string]string{"nominatedNodeName": node},
	})
	if err != nil {
		return fmt.Errorf("nominate pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	err = w.Client.Status().Patch(ctx, pod.object(), client.RawPatch(types.MergePatchType, patch))
	// The server answers Invalid for a pod that is bound.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("nominate pod %s/%s: %w", pod.Namespace, pod.Name, err)
}
