package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/disruption/drain"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/writer"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// eviction carries out a drain.Step.
type eviction struct {
	evictor Evictor
	events  loop.EventRecorder
	metrics *metrics.Metrics
	log     *slog.Logger
}

const parallelEvictions = 10

// run evicts the step's pods from the node. A pod that cannot be evicted now does not block other pods.
func (e eviction) run(ctx context.Context, node *corev1.Node, step drain.Step, reason string) error {
	var wait sync.WaitGroup
	slots := make(chan struct{}, parallelEvictions)
	errs := make([]error, len(step.Evict)+len(step.Force))
	do := func(i int, act func() error) {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			errs[i] = act()
		})
	}
	for i, pod := range step.Evict {
		do(i, func() error { return e.evict(ctx, node, pod, reason) })
	}
	for i, forced := range step.Force {
		do(len(step.Evict)+i, func() error { return e.force(ctx, forced) })
	}
	wait.Wait()
	for _, pod := range step.Protected {
		e.events.Emit(node, kubeclient.ReasonFailedDraining,
			"Pod "+pod.ID()+" is annotated with "+karpv1.AnnotationDoNotDisrupt+"="+pod.DoNotDisrupt)
		if until := pod.ProtectedUntil(); !until.IsZero() {
			e.events.Emit(eventPod(pod), kubeclient.ReasonDoNotDisruptUntil,
				"The node is drained, but the pod stays until "+until.UTC().Format(time.RFC3339))
		}
	}
	for _, pod := range step.InvalidProtection {
		e.events.Emit(eventPod(pod), kubeclient.ReasonInvalidDoNotDisrupt,
			fmt.Sprintf("The annotation %s=%q has no effect: write \"true\", or a duration such as \"30m\"",
				karpv1.AnnotationDoNotDisrupt, pod.DoNotDisrupt))
	}
	return e.reportFailed(node, slices.Concat(step.Evict, forcedPods(step.Force)), errs)
}

// reportFailed reports pods that cannot be evicted, for example because a webhook refuses the eviction. If the call for
// at least one pod returned no error, refusals are only reported: an error would make the controller back off, and
// delay the other pods. Errors that are not refusals are always returned.
func (e eviction) reportFailed(node *corev1.Node, pods []drain.Pod, errs []error) error {
	anySucceeded := slices.ContainsFunc(errs, func(err error) bool { return err == nil })
	if !anySucceeded {
		return errors.Join(errs...)
	}
	for i, err := range errs {
		if err != nil && isRefused(err) {
			e.events.Emit(node, kubeclient.ReasonFailedDraining, "Pod "+pods[i].ID()+" cannot be evicted: "+err.Error())
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// isRefused reports whether the API server or a webhook refuses to evict this pod, so that a retry would fail too.
func isRefused(err error) bool {
	next := kubeclient.Classify(err)
	return next == kubeclient.ReportToUser || next == kubeclient.Reject ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "webhook")
}

func forcedPods(forced []drain.Forced) []drain.Pod {
	var out []drain.Pod
	for _, f := range forced {
		out = append(out, f.Pod)
	}
	return out
}

// evict requests the eviction of one pod, and counts and reports its outcome. It returns no error for a pod that a
// PodDisruptionBudget protects now.
func (e eviction) evict(ctx context.Context, node *corev1.Node, pod drain.Pod, reason string) error {
	outcome, err := e.evictor.Evict(ctx, ref(pod))
	switch {
	case err != nil:
		e.metrics.Evictions.WithLabelValues("500").Inc()
		return err
	case outcome.Result == writer.Blocked:
		e.metrics.Evictions.WithLabelValues("429").Inc()
		e.events.Emit(node, kubeclient.ReasonFailedDraining, "Pod "+pod.ID()+" cannot be evicted now: "+outcome.Message)
	case outcome.Result == writer.PodGone:
		e.metrics.Evictions.WithLabelValues("404").Inc()
	default:
		e.metrics.Evictions.WithLabelValues("200").Inc()
		e.metrics.Pods.Drained.WithLabelValues(reason).Inc()
		e.events.Emit(eventPod(pod), kubeclient.ReasonEvicted, "Evicted pod: "+reason)
		if until := pod.ProtectedUntil(); !until.IsZero() {
			e.events.Emit(eventPod(pod), kubeclient.ReasonDoNotDisruptElapsed,
				"The protection by its do-not-disrupt annotation ended at "+until.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// force deletes one pod, with the remaining time of the node as its grace period.
func (e eviction) force(ctx context.Context, forced drain.Forced) error {
	if err := e.evictor.DeletePod(ctx, ref(forced.Pod), int64(forced.Grace/time.Second)); err != nil {
		return err
	}
	e.metrics.Pods.Drained.WithLabelValues("Forceful Termination").Inc()
	e.events.Emit(eventPod(forced.Pod), kubeclient.ReasonDisrupted, "Deleted the pod: the termination grace period of its node ends")
	e.log.Info("deleted pod by force", "Pod", forced.Pod.ID(), "graceSeconds", forced.Grace.Seconds())
	return nil
}

func ref(pod drain.Pod) writer.PodRef {
	return writer.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// eventPod returns a pod object with the fields that an event needs.
func eventPod(pod drain.Pod) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: loop.UID(pod.UID)},
	}
}
