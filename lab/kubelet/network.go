package kubelet

import (
	"fmt"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noAddressRetry is how long a pod waits that there was no address for.
const noAddressRetry = time.Second

// bringNetworkUp lets pods have addresses and the node become Ready. What the network plug-in can do follows from the
// environment of its pod, nil where there is none.
func (k *Kubelet) bringNetworkUp(plugin *corev1.Pod) {
	k.networkUp.Do(func() {
		most := int64(math.MaxInt64)
		if plugin != nil && k.PodAddresses != nil {
			environment := map[string]string{}
			for _, container := range plugin.Spec.Containers {
				for _, e := range container.Env {
					environment[e.Name] = e.Value
				}
			}
			most = k.PodAddresses(environment)
		}
		k.locked(func() { k.addresses = most })
		close(k.network)
	})
}

// giveAddress gives a pod an address, if it has none. It returns false when there is none left.
func (k *Kubelet) giveAddress(pod *corev1.Pod, state *podState) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if state.address != "" {
		return true
	}
	if pod.Spec.HostNetwork || k.OwnNetwork {
		state.address = k.IP
		return true
	}
	taken := int64(0)
	for _, other := range k.pods {
		if other.address != "" && other.address != k.IP && !other.ended {
			taken++
		}
	}
	if taken >= k.addresses {
		return false
	}
	state.address = k.fleet.podIP(strings.Contains(k.IP, ":"))
	return true
}

// tellNoAddress writes the event by which people find out.
func (k *Kubelet) tellNoAddress(pod *corev1.Pod) {
	now := metav1.Now()
	_, err := k.client.Events(pod.Namespace).Create(k.ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         "FailedCreatePodSandBox", Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: "kubelet", Host: k.NodeName},
		Message: fmt.Sprintf("Failed to create pod sandbox: plugin type=\"aws-cni\" name=\"aws-cni\" failed (add): "+
			"add cmd: failed to assign an IP address to container (%d are in use)", k.addresses),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		k.logError("event.go:359", "Server rejected event (will not retry!)", err)
	}
}
