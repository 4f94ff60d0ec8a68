package conversion

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

// BenchmarkTopologyOf should take under 10 µs for a pod that is spread over two keys and has anti-affinity to its own
// workload.
func BenchmarkTopologyOf(b *testing.B) {
	pod := kubetest.WebPod("p")
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, key := range []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"} {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web, MatchLabelKeys: []string{"app"},
		})
	}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: "kubernetes.io/hostname", LabelSelector: web, NamespaceSelector: web},
	}}}
	refs := References{Namespaces: NewNamespaces(nil, nil, true)}
	b.ReportAllocs()
	for b.Loop() {
		if got := topologyOf(pod, refs); len(got.spread) != 2 || len(got.antiAffinity) != 1 {
			b.Fatalf("the topology is %+v, want 2 spread constraints and 1 anti-affinity term", got)
		}
	}
}
