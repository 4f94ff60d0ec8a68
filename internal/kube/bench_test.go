package kube

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// BenchmarkSnapshot has a budget: a few milliseconds for the small cluster, under 100 ms for the middle one.
func BenchmarkSnapshot(b *testing.B) {
	for _, size := range []struct{ pending, nodes, perNode int }{{500, 100, 20}, {5_000, 1_000, 0}, {5_000, 1_000, 30}} {
		o := crowd(size.pending, size.nodes, size.perNode)
		b.Run(fmt.Sprintf("%d-pending-%d-nodes-%d-bound", size.pending, size.nodes, size.nodes*size.perNode), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := o.Snapshot(View{Now: noon, Live: true}); len(got.Pods) != size.pending {
					b.Fatalf("%d pods need a place, want %d", len(got.Pods), size.pending)
				}
			}
		})
	}
}

// crowd returns a cluster of ready nodes with pods on them, and pods that are pending.
func crowd(pending, nodes, perNode int) Objects {
	var o Objects
	for i := range 5 {
		o.DaemonSets = append(o.DaemonSets, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprint("daemon-", i), UID: types.UID(fmt.Sprint("d", i))},
			Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
				Containers:   []corev1.Container{container("50m", "64Mi")},
				Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			}}},
		})
	}
	for i := range nodes {
		id := fmt.Sprintf("aws:///us-east-1a/i-%d", i)
		size := corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
		o.Claims = append(o.Claims, &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("general-", i), UID: types.UID(fmt.Sprint("c", i))},
			Status:     karpv1.NodeClaimStatus{ProviderID: id, NodeName: fmt.Sprint("ip-", i), Capacity: size, Allocatable: size},
		})
		o.Nodes = append(o.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("ip-", i), Labels: map[string]string{
				"kubernetes.io/os": "linux", "kubernetes.io/hostname": fmt.Sprint("ip-", i), "karpenter.sh/nodepool": "general",
				"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
			}},
			Spec:   corev1.NodeSpec{ProviderID: id},
			Status: corev1.NodeStatus{Capacity: size, Allocatable: size},
		})
		for p := range perNode {
			pod := crowdPod(fmt.Sprintf("bound-%d-%d", i, p))
			pod.Spec.NodeName, pod.Status.Phase = fmt.Sprint("ip-", i), corev1.PodRunning
			o.Pods = append(o.Pods, pod)
		}
	}
	for i := range pending {
		pod := crowdPod(fmt.Sprint("pending-", i))
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		o.Pods = append(o.Pods, pod)
	}
	return o
}

func crowdPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"kubernetes.io/arch": "amd64"},
			Containers:   []corev1.Container{container("250m", "256Mi"), container("10m", "32Mi")},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
			Volumes: []corev1.Volume{{Name: "token"}},
		},
	}
}

func container(cpu, memory string) corev1.Container {
	return corev1.Container{Name: "c" + cpu, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory),
	}}}
}

// BenchmarkDemands has a budget: under 10 µs for a pod that is spread over two keys and keeps away from its like.
func BenchmarkDemands(b *testing.B) {
	pod := crowdPod("p")
	like := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, key := range []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"} {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: like, MatchLabelKeys: []string{"app"},
		})
	}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: "kubernetes.io/hostname", LabelSelector: like, NamespaceSelector: like},
	}}}
	around := surroundingsOf(Objects{}, View{Live: true})
	b.ReportAllocs()
	for b.Loop() {
		if got := topologyOf(pod, around); len(got.spread) != 2 || len(got.apart) != 1 {
			b.Fatalf("%+v", got)
		}
	}
}
