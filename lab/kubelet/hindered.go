package kubelet

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Parts of image names. The lab emulates the programs of these images.
const (
	storageDriver = "aws-ebs-csi-driver" // reads its zone from the metadata service
	devicePlugin  = "k8s-device-plugin"  // registers its devices with the kubelet
)

// firstReportDelay is the delay from podState.seen until the first event about a pod that does not start.
const firstReportDelay = 5 * time.Second

// reportInterval is the minimum interval between two such events for one pod.
const reportInterval = 10 * time.Second

// startFailureMessage returns the message of the event for a pod that cannot start on this node, or "" if it can start.
func (k *Kubelet) startFailureMessage(pod *corev1.Pod) string {
	switch {
	case k.isNetworkPod(pod) && k.fleet.kubeProxyPod != "" && !k.hasKubeProxy():
		return "Back-off restarting failed container aws-node: Unable to reach API Server, Get \"https://172.20.0.1:443/version?timeout=5s\": dial tcp 172.20.0.1:443: i/o timeout"
	case usesImage(pod, storageDriver) && !pod.Spec.HostNetwork && k.HopLimit == 1:
		return "Back-off restarting failed container ebs-plugin: could not get metadata from IMDS: Get \"http://169.254.169.254/latest/meta-data/instance-id\": context deadline exceeded"
	case k.imageOfOtherArch(pod) != "":
		image := k.imageOfOtherArch(pod)
		return fmt.Sprintf("Failed to pull image %[1]q: rpc error: code = NotFound desc = failed to pull and unpack image %[1]q: no match for platform in manifest: not found", image)
	}
	return ""
}

// imageOfOtherArch returns the first image whose tag names another architecture than the node's: "app:1.2-amd64". The
// result is empty without such an image.
func (k *Kubelet) imageOfOtherArch(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		for _, arch := range []string{"amd64", "arm64"} {
			if strings.HasSuffix(c.Image, "-"+arch) && k.Arch != arch {
				return c.Image
			}
		}
	}
	return ""
}

// usesImage reports whether the image of one of the pod's containers contains name.
func usesImage(pod *corev1.Pod, name string) bool {
	for _, c := range pod.Spec.Containers {
		if strings.Contains(c.Image, name) {
			return true
		}
	}
	return false
}

func (k *Kubelet) hasKubeProxy() bool {
	all, err := k.fleet.pods.ByIndex(byNode, k.NodeName)
	if err != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, object := range all {
		if pod, ok := object.(*corev1.Pod); ok && pod.Labels["k8s-app"] == k.fleet.kubeProxyPod {
			if state := k.pods[pod.UID]; state != nil && !state.started.IsZero() && !state.ended {
				return true
			}
		}
	}
	return false
}

// applyEffects applies the effects that a started pod has on its node: kube-proxy lets the network pod start, and a
// device plug-in registers the node's devices.
func (k *Kubelet) applyEffects(pod *corev1.Pod) {
	if k.fleet.kubeProxyPod != "" && pod.Labels["k8s-app"] == k.fleet.kubeProxyPod {
		k.fleet.enqueuePodsOf(k.NodeName)
	}
	if !usesImage(pod, devicePlugin) || len(k.Devices) == 0 {
		return
	}
	k.withLock(func() {
		capacity, allocatable := k.Capacity.DeepCopy(), k.Allocatable.DeepCopy()
		maps.Copy(capacity, k.Devices)
		maps.Copy(allocatable, k.Devices)
		k.Capacity, k.Allocatable = capacity, allocatable
	})
	if err := k.report(); err != nil {
		k.logError("kubelet_node_status.go:473", "Error updating node status, will retry", err)
	}
}

// reportStartFailure writes an event with the reason why a pod does not start, at most once per reportInterval.
func (k *Kubelet) reportStartFailure(pod *corev1.Pod, state *podState, message string, at time.Time) {
	if at.Sub(state.reportedAt) < reportInterval {
		return
	}
	state.reportedAt = at
	now := metav1.NewTime(at)
	_, err := k.client.Events(pod.Namespace).Create(k.ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         "Failed", Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: "kubelet", Host: k.NodeName},
		Message: message, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		k.logError("event.go:359", "Server rejected event (will not retry!)", err)
	}
}
