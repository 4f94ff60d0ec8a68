package kubelet

import (
	"fmt"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const noAddressRetry = time.Second

// bringNetworkUp makes addresses for pods available; after that, run reports the node as Ready. Calls after the first
// have no effect. plugin is the network plug-in's pod; the pod's environment determines the number of addresses. plugin
// is nil in a cluster without a network plug-in pod.
func (k *Kubelet) bringNetworkUp(plugin *corev1.Pod) {
	k.networkUp.Do(func() {
		limit := int64(math.MaxInt64)
		if plugin != nil && k.PodAddresses != nil {
			environment := map[string]string{}
			for _, container := range plugin.Spec.Containers {
				for _, e := range container.Env {
					environment[e.Name] = e.Value
				}
			}
			limit = k.PodAddresses(environment)
		}
		k.withLock(func() { k.addresses = limit })
		close(k.network)
	})
}

// assignAddress returns false if the pod has no address and none is free.
func (k *Kubelet) assignAddress(pod *corev1.Pod, state *podState) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if state.address != "" {
		return true
	}
	if pod.Spec.HostNetwork || k.OwnNetwork {
		state.address = k.IP
		return true
	}
	used := int64(0)
	for _, other := range k.pods { // pods with hostNetwork have the node's address k.IP
		if other.address != "" && other.address != k.IP && !other.ended {
			used++
		}
	}
	if used >= k.addresses {
		return false
	}
	state.address = k.fleet.podIP(strings.Contains(k.IP, ":"))
	return true
}

// reportNoAddress writes the kubelet's event about the VPC CNI's error if no address is free.
func (k *Kubelet) reportNoAddress(pod *corev1.Pod) {
	now := metav1.Now()
	_, err := k.client.Events(pod.Namespace).Create(k.ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         "FailedCreatePodSandBox",
		Type:           corev1.EventTypeWarning,
		Source:         corev1.EventSource{Component: "kubelet", Host: k.NodeName},
		Message: fmt.Sprintf("Failed to create pod sandbox: plugin type=\"aws-cni\" name=\"aws-cni\" failed (add): "+
			"add cmd: failed to assign an IP address to container (%d are in use)", k.addresses),
		FirstTimestamp: now,
		LastTimestamp:  now,
		Count:          1,
	}, metav1.CreateOptions{})
	if err != nil {
		k.logError("event.go:359", "Server rejected event (will not retry!)", err)
	}
}
