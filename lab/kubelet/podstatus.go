package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// runningStatus returns the status of a pod whose containers all run and are ready.
func (k *Kubelet) runningStatus(pod *corev1.Pod, ip string, now time.Time) corev1.PodStatus {
	started := metav1.NewTime(now)
	status := corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: conditions(started, corev1.ConditionTrue, ""),
		HostIP:     k.IP, HostIPs: []corev1.HostIP{{IP: k.IP}},
		PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		StartTime: &started,
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}
	terminated := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "Completed", StartedAt: started, FinishedAt: started,
	}}
	for _, c := range pod.Spec.InitContainers {
		state := terminated
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			state = running
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(c, state))
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, running))
	}
	return status
}

// endedStatus returns the status of a pod whose containers have all exited with the given code.
func endedStatus(pod *corev1.Pod, started, now time.Time, code int32) corev1.PodStatus {
	status := corev1.PodStatus{Phase: corev1.PodSucceeded}
	reason := "Completed"
	if code != 0 {
		status.Phase, reason = corev1.PodFailed, "Error"
	}
	status.Conditions = conditions(metav1.NewTime(now), corev1.ConditionFalse, "PodCompleted")
	terminated := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: metav1.NewTime(started), FinishedAt: metav1.NewTime(now),
	}}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, terminated))
	}
	return status
}

// containerStatus returns the status of a container that runs or has terminated. A container that terminated with exit
// code 0 is ready, because Kubernetes reports such init containers as ready.
func containerStatus(c corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	running := state.Running != nil
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "containerd://" + c.Name,
		State: state, Ready: running || state.Terminated.ExitCode == 0, Started: &running,
	}
}

// conditions returns the pod's conditions, with their last transition at the given time. ready is the status of all
// conditions except PodInitialized, which is true. PodReadyToStartContainers has no reason, the other conditions have
// reason.
func conditions(at metav1.Time, ready corev1.ConditionStatus, reason string) []corev1.PodCondition {
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: at}
	}
	return []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, ready, ""),
		condition(corev1.PodInitialized, corev1.ConditionTrue, reason),
		condition(corev1.ContainersReady, ready, reason),
		condition(corev1.PodReady, ready, reason),
	}
}
