package kubelet

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
)

// podState is the kubelet's own state of a pod, which can be newer than the watched pod. Only one worker at a time
// processes a pod. Workers of other pods read started, ended, requests and address. Therefore these fields are written
// only with the kubelet's lock held.
type podState struct {
	seen          time.Time // time when the kubelet first processed the pod
	started       time.Time // zero until the pod runs
	stoppingSince time.Time // time when the kubelet first processed the pod's deletion; zero before
	ended         bool      // the final phase was written, or the pod was deleted
	requests      corev1.ResourceList
	address       string    // address of the pod; empty until the network plug-in assigns one
	reportedAt    time.Time // time of the last event with the reason why the pod does not start
}

// syncPod advances a pod of this node, and returns the delay until the next call. Zero means that syncPod is called
// again only after the pod changes.
func (k *Kubelet) syncPod(pod *corev1.Pod, now time.Time) time.Duration {
	state := k.stateOf(pod, now)
	if !state.started.IsZero() && k.isNetworkPod(pod) {
		k.bringNetworkUp(pod) // for a plug-in's pod that ran before this kubelet started
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return k.stopPod(pod, state, now)
	case state.ended:
		return 0
	case state.started.IsZero():
		return k.startPod(pod, state, now)
	}
	return k.endPod(pod, state, now)
}

// stateOf returns the state of a pod. It creates a missing state, from the status of the pod if the pod ran or ended
// before this kubelet started.
func (k *Kubelet) stateOf(pod *corev1.Pod, now time.Time) *podState {
	k.mu.Lock()
	defer k.mu.Unlock()
	state := k.pods[pod.UID]
	if state != nil {
		return state
	}
	state = &podState{seen: now, requests: resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})}
	switch pod.Status.Phase {
	case corev1.PodRunning:
		state.started = now
		if pod.Status.StartTime != nil {
			state.started = pod.Status.StartTime.Time
		}
		state.address = pod.Status.PodIP
	case corev1.PodSucceeded, corev1.PodFailed:
		state.ended = true
	case corev1.PodPending, corev1.PodUnknown:
	}
	k.pods[pod.UID] = state
	return state
}

// isNetworkPod reports whether a pod is the network plug-in's pod, see NewFleet.
func (k *Kubelet) isNetworkPod(pod *corev1.Pod) bool {
	return k.fleet.networkPod != "" && pod.Labels["k8s-app"] == k.fleet.networkPod
}

// forgetPod frees the resources and the address of a pod that no longer exists.
func (k *Kubelet) forgetPod(uid types.UID) {
	k.withLock(func() { delete(k.pods, uid) })
}

// startPod starts a pod, or rejects it if the node's resources do not suffice. It returns the delay until the next
// call, see syncPod.
func (k *Kubelet) startPod(pod *corev1.Pod, state *podState, now time.Time) time.Duration {
	if !pod.Spec.HostNetwork && !k.hasNetwork() {
		return 0 // the fleet enqueues the pod when the network is up
	}
	if wait := state.seen.Add(k.fleet.pace.PodStart).Sub(now); wait > 0 {
		return wait
	}
	if resource := k.lackingResource(state); resource != "" {
		return k.writeStatus(pod, corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: "OutOf" + resource,
			Message: "Pod was rejected: Node didn't have enough resource: " + resource,
		}, func(written bool) { state.ended = written })
	}
	if message := k.startFailureMessage(pod); message != "" {
		if now.Sub(state.seen) > firstReportDelay {
			k.reportStartFailure(pod, state, message, now)
		}
		return time.Second
	}
	if !k.assignAddress(pod, state) {
		k.reportNoAddress(pod)
		return noAddressRetry
	}
	delay := k.writeStatus(pod, k.runningStatus(pod, state.address, now), func(written bool) {
		state.started = time.Time{}
		if written {
			state.started = now
		}
	})
	// From here, delay is 0 unless the write failed.
	if delay == 0 && k.isNetworkPod(pod) {
		k.bringNetworkUp(pod)
	}
	if delay == 0 {
		k.applyEffects(pod)
	}
	if delay == 0 {
		delay = untilEnd(pod, state, now) // -1 (no end) means no further call, as 0 does
	}
	return delay
}

// lackingResource returns the name of a resource whose free amount on the node is smaller than the pod's request, or
// "". Like the scheduler, a kubelet checks the resources before it admits a pod.
func (k *Kubelet) lackingResource(state *podState) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	pods := int64(1) // the pod of state
	left := k.Allocatable.DeepCopy()
	for _, other := range k.pods {
		if other == state || other.started.IsZero() || other.ended {
			continue
		}
		pods++
		for name, amount := range other.requests {
			rest := left[name]
			rest.Sub(amount)
			left[name] = rest
		}
	}
	if limit := left[corev1.ResourcePods]; pods > limit.Value() {
		return string(corev1.ResourcePods)
	}
	for name, amount := range state.requests {
		rest := left[name]
		if !amount.IsZero() && rest.Cmp(amount) < 0 {
			return string(name)
		}
	}
	return ""
}

// endPod ends a running pod if the time in its annotation AnnotationRunFor is over. It returns the delay until the next
// call, see syncPod.
func (k *Kubelet) endPod(pod *corev1.Pod, state *podState, now time.Time) time.Duration {
	wait := untilEnd(pod, state, now)
	if wait != 0 {
		return max(wait, 0) // 0 without AnnotationRunFor
	}
	code, _ := strconv.Atoi(pod.Annotations[AnnotationExitCode])
	return k.writeStatus(pod, endedStatus(pod, state.started, now, int32(code)), func(written bool) { state.ended = written })
}

// untilEnd returns how long a pod will still run: -1 for a pod without AnnotationRunFor, and 0 if the time is over.
func untilEnd(pod *corev1.Pod, state *podState, now time.Time) time.Duration {
	life, err := time.ParseDuration(pod.Annotations[AnnotationRunFor])
	if err != nil {
		return -1
	}
	return max(state.started.Add(life).Sub(now), 0)
}

// stopPod deletes a terminating pod after the time that the pod takes to stop. It returns the delay until the next
// call, see syncPod.
func (k *Kubelet) stopPod(pod *corev1.Pod, state *podState, now time.Time) time.Duration {
	if state.stoppingSince.IsZero() {
		state.stoppingSince = now
	}
	stopTime := k.fleet.pace.PodStop
	if d, err := time.ParseDuration(pod.Annotations[AnnotationStopAfter]); err == nil {
		stopTime = d
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		stopTime = min(stopTime, time.Duration(*grace)*time.Second)
	}
	if state.started.IsZero() || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		stopTime = 0 // no container runs
	}
	if wait := state.stoppingSince.Add(stopTime).Sub(now); wait > 0 {
		return wait
	}
	if k.BeforeRemoval != nil {
		k.BeforeRemoval()
	}
	noGrace := int64(0)
	err := k.client.Pods(pod.Namespace).Delete(k.ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &noGrace,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		k.logError("status_manager.go:1046", "Failed to delete status for pod", err)
		return time.Second
	}
	k.withLock(func() { state.ended = true })
	return 0
}

// writeStatus patches the pod's status with the node's credentials. After an error it returns the delay until the
// retry. Otherwise it returns 0, also if the pod does not exist any more. It calls setState(true) before the request,
// so that workers of other pods already count this pod. After an error it calls setState(false) to undo that.
func (k *Kubelet) writeStatus(pod *corev1.Pod, status corev1.PodStatus, setState func(written bool)) time.Duration {
	k.withLock(func() { setState(true) })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err == nil {
		_, err = k.client.Pods(pod.Namespace).Patch(k.ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0
	}
	k.withLock(func() { setState(false) })
	k.logError("status_manager.go:1015", fmt.Sprintf("Failed to update status for pod %s/%s", pod.Namespace, pod.Name), err)
	return time.Second
}

func (k *Kubelet) withLock(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}
