package live

import (
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Mix selects whether the workloads have scheduling rules.
type Mix string

// The mixes.
const (
	Plain       Mix = "plain"       // no rules between pods
	Constrained Mix = "constrained" // 4 of 9 Deployments (on average) have a topology spread or anti-affinity
)

// workload is a Deployment.
type workload struct {
	name     string
	cpu      int64 // request of a pod, in millicores
	memory   int64 // request of a pod, in MiB
	replicas int   // number of pods at full scale
	rule     rule
}

// rule is the scheduling rule between the pods of a Deployment.
type rule string

const (
	noRule           rule = ""
	zoneSpread       rule = "zone spread"
	hostSpread       rule = "host spread"
	hostAntiAffinity rule = "host anti-affinity"
)

const deploymentCount = 24

// workloads returns random Deployments of a mix. The seed determines the result. A value that is listed twice is drawn
// twice as often.
func workloads(m Mix, seed uint64) []workload {
	r := rand.New(rand.NewPCG(seed, 0))
	cpus, gibPerCPU, counts := []int64{100, 200, 250, 500, 500, 1000, 1000, 2000}, []int64{1, 2, 2, 4, 4, 8}, []int{4, 6, 8, 12, 20, 30}
	rules := []rule{noRule, noRule, noRule, noRule, noRule, zoneSpread, zoneSpread, hostSpread, hostAntiAffinity}
	out := make([]workload, deploymentCount)
	for i := range out {
		w := workload{name: fmt.Sprintf("w%02d", i), cpu: cpus[r.IntN(len(cpus))], replicas: counts[r.IntN(len(counts))]}
		w.memory = gibPerCPU[r.IntN(len(gibPerCPU))] * w.cpu * 1024 / 1000
		// A rule is drawn for each mix, so that both mixes have the same requests.
		if drawn := rules[r.IntN(len(rules))]; m == Constrained {
			w.rule = drawn
		}
		if w.rule == hostAntiAffinity {
			w.replicas = min(w.replicas, 6) // each needs its own node
		}
		out[i] = w
	}
	return out
}

// replicasAt returns the number of replicas at a share of the full scale, at least 1.
func (w workload) replicasAt(share float64) int { return max(1, int(float64(w.replicas)*share+0.5)) }

// pods returns the number of pods at a share of the full scale.
func pods(all []workload, share float64) int {
	n := 0
	for _, w := range all {
		n += w.replicasAt(share)
	}
	return n
}

// deployment returns the Deployment at a share of the full scale. version is part of the pod template, so that a new
// version starts a rolling update.
func (w workload) deployment(share float64, version int) *appsv1.Deployment {
	labels := map[string]string{"app": w.name}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To(int64(2)),
		Containers: []corev1.Container{{Name: "main", Image: "registry.example/pause:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(w.cpu, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(w.memory<<20, resource.BinarySI),
			}}}},
	}
	switch w.rule {
	case zoneSpread:
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}}
	case hostSpread:
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 2, TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}}
	case hostAntiAffinity:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: selector}}}}
	case noRule:
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(w.replicasAt(share))), Selector: selector, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"version": fmt.Sprint(version)}}, Spec: spec}},
	}
}

const namespace = "default"

func daemonSets() []*appsv1.DaemonSet {
	daemonSet := func(name, cpu, memory string) *appsv1.DaemonSet {
		labels := map[string]string{"ds": name}
		return &appsv1.DaemonSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"},
			Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{Name: "main", Image: "registry.example/ds:1", Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}},
				}}},
		}
	}
	return []*appsv1.DaemonSet{daemonSet("logs", "50m", "100Mi"), daemonSet("metrics", "100m", "180Mi")}
}
