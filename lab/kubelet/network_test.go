package kubelet

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestGiveAddress checks that the network plug-in assigns an address to each pod while it has any, and none to pods on
// the host's network, and that a new pod gets the address of an ended one.
func TestGiveAddress(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"10.0.0.7", "2600:1f18::7"} {
		k := &Kubelet{
			Settings:  Settings{IP: host, PodAddresses: func(e map[string]string) int64 { return int64(len(e["MORE"])) }},
			fleet:     &Fleet{nextIP: map[bool]netip.Addr{false: netip.MustParseAddr("100.64.0.1"), true: netip.MustParseAddr("2600::1")}},
			network:   make(chan struct{}),
			pods:      map[types.UID]*podState{},
			addresses: 0,
		}
		k.bringNetworkUp(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "MORE", Value: "xx"}}}}}})
		give := func(uid types.UID, onHost bool) string {
			state := k.pods[uid]
			if state == nil {
				state = &podState{}
				k.pods[uid] = state
			}
			k.giveAddress(&corev1.Pod{Spec: corev1.PodSpec{HostNetwork: onHost}}, state)
			return state.address
		}
		a, onHost, b, late := give("a", false), give("cni", true), give("b", false), give("c", false)
		if onHost != host || a == "" || b == "" || a == b || late != "" || give("a", false) != a {
			t.Errorf("of two addresses beside %s: %q, %q and %q, on the host %q", host, a, b, late, onHost)
		}
		if got, want := netip.MustParseAddr(a).Is6(), netip.MustParseAddr(host).Is6(); got != want {
			t.Errorf("a pod on %s has the address %s", host, a)
		}
		k.pods["a"].ended = true
		if give("c", false) == "" {
			t.Error("the address of an ended pod is not reused")
		}
	}
}
