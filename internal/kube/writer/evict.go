package writer

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Eviction is the outcome of an eviction request.
type Eviction struct {
	Result  EvictionResult // empty if the request failed
	Message string         // the server's message; set only if Result is Blocked
}

// EvictionResult is one of the constants below.
type EvictionResult string

// The outcomes of an eviction.
const (
	Evicted        EvictionResult = "Evicted" // the eviction was accepted; the pod ends within its own grace period
	Blocked        EvictionResult = "Blocked" // a PodDisruptionBudget forbids the eviction for now; try again later
	PodGone        EvictionResult = "PodGone" // the pod has ended, another pod has its name now, or its namespace is being deleted
	EvictionFailed EvictionResult = ""        // the request failed; the error says why
)

// PodRef identifies one pod, and no later pod with the same name.
type PodRef struct {
	Namespace, Name string // namespace and name of the pod
	UID             string // UID of the pod
}

// Evict evicts the pod through the eviction subresource, so that PodDisruptionBudgets are honored.
func (w *Writer) Evict(ctx context.Context, pod PodRef) (Eviction, error) {
	target := pod.object()
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(pod.UID)},
	}
	err := w.Client.SubResource("eviction").Create(ctx, target, eviction)
	switch {
	case err == nil:
		return Eviction{Result: Evicted}, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return Eviction{Result: PodGone}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Nothing can be created in the namespace any more, not even evictions; its pods are being deleted.
		return Eviction{Result: PodGone}, nil
	case isBlockedByBudget(err):
		return Eviction{Result: Blocked, Message: err.Error()}, nil
	}
	return Eviction{}, fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// DeletePod deletes the pod regardless of budgets, for use after the grace period of its node. The pod ends within
// grace seconds, at least 1. It is no error if the pod is already gone.
func (w *Writer) DeletePod(ctx context.Context, pod PodRef, grace int64) error {
	err := w.Client.Delete(ctx, pod.object(),
		client.GracePeriodSeconds(max(grace, 1)), client.Preconditions{UID: ptr.To(types.UID(pod.UID))})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

func (p PodRef) object() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
}

// isBlockedByBudget reports whether a PodDisruptionBudget blocks the eviction. The server then answers 429 with a
// specific cause; without that cause, 429 means overload. If two budgets select the pod, the server answers 500
// without a cause.
func isBlockedByBudget(err error) bool {
	if apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		return true
	}
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "more than one PodDisruptionBudget")
}
