package nodestate

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// PodWatch handles changes of pods: it requests plans, records when pods came to nodes and left them, and measures the
// time until pods are bound and running. Its handlers must not be called concurrently; LastPodEvent and KeepOnly may be
// called at any time.
type PodWatch struct {
	Batch   *loop.Batch      // collects requests for the next plan
	Metrics *metrics.Metrics // the metrics of this process

	mu        sync.Mutex
	lastEvent map[string]time.Time // by node name: when a pod last came to the node or left it
	lastTry   time.Time            // when kube-scheduler last tried to schedule a pod
	expected  map[types.UID]string // by pending pod: the Node that was launched for it
}

type podInformer interface {
	AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
}

// Follow watches pods until ctx ends. Only the leader may call it: in other processes no loop calls KeepOnly, and the
// records would only grow.
func (w *PodWatch) Follow(ctx context.Context, pods podInformer) error {
	if _, err := pods.AddEventHandler(w.handler()); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	<-ctx.Done()
	return nil
}

func (w *PodWatch) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInitial bool) {
			if pod, ok := object.(*corev1.Pod); ok {
				w.added(pod, isInitial)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok1 := before.(*corev1.Pod)
			pod, ok2 := after.(*corev1.Pod)
			if ok1 && ok2 {
				w.changed(old, pod)
			}
		},
		DeleteFunc: func(object any) {
			if missed, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = missed.Obj // the watch missed the deletion
			}
			if pod, ok := object.(*corev1.Pod); ok {
				w.noteEvent(pod)
				w.takeExpected(pod)
			}
		},
	}
}

// added handles a new pod. isInitial is true for a pod that existed before the watch started.
func (w *PodWatch) added(pod *corev1.Pod, isInitial bool) {
	if NeedsPlan(pod) {
		w.Batch.AskFor(pod.Namespace, string(pod.UID))
	}
	if !isInitial {
		w.noteEvent(pod)
	}
}

// changed handles the change of a pod from old to pod.
func (w *PodWatch) changed(old, pod *corev1.Pod) {
	if NeedsPlan(pod) {
		w.Batch.AskFor(pod.Namespace, string(pod.UID))
	}
	now := time.Now()
	if wasTried(old, pod) {
		w.mu.Lock()
		w.lastTry = now
		w.mu.Unlock()
	}
	if old.Spec.NodeName == "" && pod.Spec.NodeName != "" {
		w.Metrics.Bound.Observe(now.Sub(pod.CreationTimestamp.Time).Seconds())
		w.noteEvent(pod)
		if node := w.takeExpected(pod); node != "" {
			w.CountPlanned(node == pod.Spec.NodeName)
		}
	}
	if old.Status.Phase == corev1.PodPending && pod.Status.Phase == corev1.PodRunning {
		w.Metrics.Startup.Observe(now.Sub(pod.CreationTimestamp.Time).Seconds())
	}
	hasFinished := !isFinished(old) && isFinished(pod)
	if hasFinished || old.DeletionTimestamp == nil && pod.DeletionTimestamp != nil {
		w.noteEvent(pod)
	}
}

// noteEvent records that a pod came to its node or left it. It ignores DaemonSet pods and static pods, because they come
// and go with their node.
func (w *PodWatch) noteEvent(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	endsWithNode := owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
	if pod.Spec.NodeName == "" || endsWithNode {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lastEvent == nil {
		w.lastEvent = map[string]time.Time{}
	}
	w.lastEvent[pod.Spec.NodeName] = time.Now()
}

// LastPodEvent returns when a pod last came to the node or left it; zero if this process has seen no such event.
func (w *PodWatch) LastPodEvent(node string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lastEvent[node]
}

// Expect records the Node that was launched for a pending pod, so that CountPlanned is called when the pod is bound.
func (w *PodWatch) Expect(pod types.UID, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expected == nil {
		w.expected = map[types.UID]string{}
	}
	w.expected[pod] = node
}

// takeExpected removes and returns the Node that was launched for the pod; empty if there is none.
func (w *PodWatch) takeExpected(pod *corev1.Pod) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	node := w.expected[pod.UID]
	delete(w.expected, pod.UID)
	return node
}

// CountPlanned counts a bound pod for which a Node was launched. asPlanned: the pod was bound to that Node.
func (w *PodWatch) CountPlanned(asPlanned bool) {
	node := metrics.OtherNode
	if asPlanned {
		node = metrics.PlannedNode
	}
	w.Metrics.Planned.WithLabelValues(node).Inc()
}

// LastAttempt returns when this process last saw that kube-scheduler had tried to schedule a pod; zero if it has not, or
// if w is nil.
func (w *PodWatch) LastAttempt() time.Time {
	if w == nil {
		return time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lastTry
}

// wasTried reports whether the change from old to pod shows an attempt of kube-scheduler: the pod was bound, its
// nomination was cleared, or the message of its condition PodScheduled has changed.
func wasTried(old, pod *corev1.Pod) bool {
	isBound := pod.Spec.NodeName != ""
	isCleared := old.Status.NominatedNodeName != "" && pod.Status.NominatedNodeName == ""
	return old.Spec.NodeName == "" && (isBound || isCleared || scheduledMessage(old) != scheduledMessage(pod))
}

func scheduledMessage(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Message
		}
	}
	return ""
}

// KeepOnly drops the records of all nodes that are not in nodes.
func (w *PodWatch) KeepOnly(nodes map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.lastEvent {
		if !nodes[name] {
			delete(w.lastEvent, name)
		}
	}
}

// NeedsPlan reports whether the pod waits for a node and kube-scheduler has marked it as unschedulable.
func NeedsPlan(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || isFinished(pod) {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
