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

// Eviction is the outcome of asking a pod to leave.
type Eviction struct {
	Result  EvictionResult
	Message string // what the server said; set with Blocked
}

// EvictionResult is a closed set.
type EvictionResult string

// The outcomes of an eviction.
const (
	Evicted        EvictionResult = "Evicted" // it has been asked to end, with its own grace period
	Blocked        EvictionResult = "Blocked" // a PodDisruptionBudget forbids it for now: ask again later
	PodGone        EvictionResult = "PodGone" // it ended before, another pod has its name now, or its namespace takes it along
	EvictionFailed EvictionResult = ""        // see the error
)

// PodRef names one pod and no later one of its name.
type PodRef struct {
	Namespace, Name string
	UID             string
}

// Evict asks the pod to leave its node, through the eviction subresource, so
// that PodDisruptionBudgets hold.
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
		// Nothing can be made in the namespace any more, evictions included; its pods are deleted one after the other.
		return Eviction{Result: PodGone}, nil
	case isBudget(err):
		return Eviction{Result: Blocked, Message: err.Error()}, nil
	}
	return Eviction{}, fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// DeletePod ends the pod within grace seconds, at least 1, whatever budgets
// say: for the time after a node's grace period. That it is gone is no error.
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

// isBudget reports whether a PodDisruptionBudget blocks the eviction. The server then answers 429 with a specific cause; without
// that cause, 429 means overload. If two budgets select one pod, it answers 500 with a message only.
func isBudget(err error) bool {
	if apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		return true
	}
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "more than one PodDisruptionBudget")
}
