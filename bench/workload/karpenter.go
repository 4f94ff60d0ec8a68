package workload

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// karpenterMarket returns the instance types of Karpenter's scheduler benchmark: 400 types, the n-th with n cores, 2n
// GiB and room for 10n pods. The kubelet reserves a tenth of a core and 10 MiB. Spot is offered in two zones, on-demand
// in three, all at the same price per hour: $0.1 per core plus $0.1 per 10^9 bytes of memory.
func karpenterMarket() catalog.Market {
	var out []catalog.Type
	for n := int64(1); n <= 400; n++ {
		name := fmt.Sprintf("fake-it-%03d", n)
		full := resources.Amounts{CPU: 1000 * n, Memory: 2 * n << 30, Pods: 10 * n}
		price := catalog.Price(n)*catalog.Dollar/10 + catalog.Price(2*n<<30/10) // in 10^-9 dollars
		t := catalog.Type{
			Name: name, Capacity: full, Allocatable: full.Sub(resources.Amounts{CPU: 100, Memory: 10 << 20}),
			Labels: requirements.Labels{
				catalog.LabelInstanceType: name, catalog.LabelArch: "amd64", catalog.LabelOS: "linux",
				catalog.LabelCPU: strconv.FormatInt(n, 10),
			},
		}
		var offerings []catalog.Offering
		for i, zone := range []string{"test-zone-1", "test-zone-2", "test-zone-3"} {
			offerings = append(offerings, catalog.Offering{Zone: zone, CapacityType: catalog.OnDemand, Price: price, Available: true})
			if i < 2 {
				offerings = append(offerings, catalog.Offering{Zone: zone, CapacityType: catalog.Spot, Price: price, Available: true})
			}
		}
		out = append(out, t.WithOfferings(offerings))
	}
	return marketOf(out)
}

// The requests from which Karpenter's benchmark draws.
var (
	karpenterMillis = []int64{100, 250, 500, 1000, 1500}
	karpenterMiB    = []int64{100, 256, 512, 1024, 2048, 4096}
)

// karpenterMix returns the pods of Karpenter's benchmark. There are five kinds of pods, each a fifth of all pods:
//   - without constraints
//   - spread over zones
//   - spread over hosts
//   - with affinity by zone to pods with the same label
//   - with anti-affinity by host to each other
//
// The requests of each pod are random, and its label has one of seven random values. Only the label of pods with
// anti-affinity is fixed. The label that a spread constraint selects is random, too, so it may differ from the pod's.
func karpenterMix(count int) []*corev1.Pod {
	random := seededRandom(42)
	letter := func() string { return string(rune('a' + random.IntN(7))) }
	pick := func(from []int64) int64 { return from[random.IntN(len(from))] }
	fifth := count / 5
	var out []*corev1.Pod
	add := func(n int, kind string, change func(*deployment)) {
		for i := range n {
			single := newDeployment(fmt.Sprintf("%s-%05d", kind, i), 1, pick(karpenterMillis), pick(karpenterMiB))
			single.labels = map[string]string{"my-label": letter()}
			change(&single)
			pod := single.pods()[0]
			pod.OwnerReferences = nil
			out = append(out, pod)
		}
	}
	spreadOver := func(key string) func(*deployment) {
		return func(d *deployment) {
			d.template.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"my-label": letter()}},
			}}
		}
	}
	plain := func(*deployment) {}
	add(fifth, "generic", plain)
	add(fifth, "zone", spreadOver(corev1.LabelTopologyZone))
	add(fifth, "host", spreadOver(corev1.LabelHostname))
	add(fifth, "near", func(d *deployment) {
		d.labels = map[string]string{"my-affinity": letter()}
		d.affinity().PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: d.labels}},
		}}
	})
	add(fifth, "apart", func(d *deployment) {
		d.labels = map[string]string{labelApp: "nginx"}
		d.affinity().PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: d.labels}},
		}}
	})
	add(count-len(out), "rest", plain)
	return out
}

// karpenterPreferences returns the pods of Karpenter's benchmark of preferences. They are identical. Each pod prefers
// one zone. It also prefers a host and a zone without other pods of the benchmark, but there are only three zones.
func karpenterPreferences(count int) []*corev1.Pod {
	d := newDeployment("picky", count, 500, 1024)
	d.prefer(1, corev1.LabelTopologyZone, "test-zone-1")
	avoid := func(weight int32, key string) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{
			Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: d.podSelector()},
		}
	}
	d.affinity().PodAntiAffinity = &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			avoid(10, corev1.LabelTopologyZone), avoid(1, corev1.LabelHostname),
		},
	}
	return d.pods()
}
