package kubelet

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAssignAddress checks which pods get an address on a node with two pod addresses. Two pods get different ones, and
// a third gets none until one of them has ended. A pod on the host's network has the node's address.
func TestAssignAddress(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"10.0.0.7", "2600:1f18::7"} {
		k := &Kubelet{ // PodAddresses counts the characters of the variable MORE
			Settings:  Settings{IP: host, PodAddresses: func(e map[string]string) int64 { return int64(len(e["MORE"])) }},
			fleet:     &Fleet{nextIP: map[bool]netip.Addr{false: netip.MustParseAddr("100.64.0.1"), true: netip.MustParseAddr("2600::1")}},
			network:   make(chan struct{}),
			pods:      map[types.UID]*podState{},
			addresses: 0,
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
		a, onHost, b, third := assign("a", false), assign("cni", true), assign("b", false), assign("c", false)
		twoDiffer, keeps := a != "" && b != "" && a != b, assign("a", false) == a
		if onHost != host || !twoDiffer || third != "" || !keeps {
			t.Errorf("node %s: pods got %q, %q, %q and on the host's network %q; want two addresses that stay, none, and the node's",
				host, a, b, third, onHost)
		}
		if got, want := netip.MustParseAddr(a).Is6(), netip.MustParseAddr(host).Is6(); got != want {
			t.Errorf("a pod on %s has the address %s, want the node's IP family", host, a)
		}
		k.pods["a"].ended = true
		if assign("c", false) == "" {
			t.Error("a pod gets no address after another pod has ended, want an address")
		}
	}
}
