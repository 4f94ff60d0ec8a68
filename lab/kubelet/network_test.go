package kubelet

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAssignAddress checks which pods get an address on a node with two pod addresses. Pods a and b get different ones,
// and pod c gets none until pod a has ended. A pod on the host's network has the node's address.
func TestAssignAddress(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"10.0.0.7", "2600:1f18::7"} {
		k := &Kubelet{ // PodAddresses counts the characters of the variable MORE
			Settings: Settings{IP: host, PodAddresses: func(e map[string]string) int64 { return int64(len(e["MORE"])) }},
			fleet:    &Fleet{nextIP: map[bool]netip.Addr{false: netip.MustParseAddr("100.64.0.1"), true: netip.MustParseAddr("2600::1")}},
			network:  make(chan struct{}),
			pods:     map[types.UID]*podState{},
		}
		k.bringNetworkUp(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "MORE", Value: "xx"}}}}}})
		assign := func(uid types.UID, isOnHost bool) string {
			state := k.pods[uid]
			if state == nil {
				state = &podState{}
				k.pods[uid] = state
			}
			k.assignAddress(&corev1.Pod{Spec: corev1.PodSpec{HostNetwork: isOnHost}}, state)
			return state.address
		}
		a, onHost, b, c, aAgain := assign("a", false), assign("cni", true), assign("b", false), assign("c", false), assign("a", false)
		if onHost != host || a == "" || b == "" || a == b || c != "" || aAgain != a {
			t.Errorf("node %s: a has %q, then %q; b has %q, c %q, the pod on the host's network %q; want a != b, no c, and the node's",
				host, a, aAgain, b, c, onHost)
		}
		if got, want := netip.MustParseAddr(a).Is6(), netip.MustParseAddr(host).Is6(); got != want {
			t.Errorf("a pod on node %s has the address %s, want the node's IP family", host, a)
		}
		k.pods["a"].ended = true
		if assign("c", false) == "" {
			t.Error("pod c gets no address after pod a has ended, want an address")
		}
	}
}
