package snapshot

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// The size of the large cluster: 5,000 nodes and 150,000 pods, the maximum that Kubernetes supports.
const (
	largeClusterNodes = 5_000
	podsPerNode       = 30 // 4 of them are DaemonSet pods, 2 others have volumes
)

// BenchmarkState, with 5,000 nodes and 150,000 pods, should take under 50 ms for a snapshot after 100 pods have
// changed. With 100 new pods, a snapshot and a plan together should take under 100 ms.
func BenchmarkState(b *testing.B) {
	o := largeCluster(largeClusterNodes)
	market := generalMarket(b)
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w := newWorld(View{})
			w.send(o)
			if got := w.state.snapshot(kubetest.Noon, market, nil); len(got.Nodes) != largeClusterNodes {
				b.Fatalf("%d nodes, want %d", len(got.Nodes), largeClusterNodes)
			}
		}
	})
	w := newWorld(View{})
	before := heap()
	w.send(o)
	if got := w.state.snapshot(kubetest.Noon, market, nil); len(got.Pods) != 0 {
		b.Fatalf("%d pods need a node, want none", len(got.Pods))
	}
	w.all = nil // only the memory of the state is measured
	held := heap() - before
	b.Run("no-events", func(b *testing.B) { benchEvents(b, w, o, market, 0) })
	b.Run("100-events", func(b *testing.B) {
		benchEvents(b, w, o, market, 100)
		b.ReportMetric(float64(held)/float64(len(o.Pods)), "held-B/pod")
	})
	b.Run("1000-events", func(b *testing.B) { benchEvents(b, w, o, market, 1000) })
	b.Run("DaemonSet-changed", func(b *testing.B) { benchDaemons(b, w, o, market) })
	b.Run("100-events-5000-pending", func(b *testing.B) { benchPending(b, w, o, market) })
	for _, workloads := range []int{5, 100} {
		b.Run(fmt.Sprintf("plan-for-100-of-%d", workloads), func(b *testing.B) { benchPlan(b, w, market, workloads) })
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what a sync.Pool kept during the first
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// benchEvents changes n pods all over the cluster in each round, and takes a snapshot.
func benchEvents(b *testing.B, w *stateTester, o Objects, market catalog.Market, n int) {
	put := w.feeds[reflect.TypeFor[*corev1.Pod]()].put
	b.ReportAllocs()
	turn := 0
	for b.Loop() {
		for range n {
			turn++
			pod := *o.Pods[turn*7919%len(o.Pods)] // 7919 is a prime, so that the pods are on nodes all over the cluster
			pod.ResourceVersion = fmt.Sprint("v", turn)
			pod.Status.StartTime = &metav1.Time{Time: kubetest.Noon}
			put(&pod)
		}
		if got := w.state.snapshot(kubetest.Noon, market, nil); len(got.Nodes) != largeClusterNodes {
			b.Fatalf("%d nodes, want %d", len(got.Nodes), largeClusterNodes)
		}
	}
}

// benchDaemons changes the requests of a DaemonSet, which affects all nodes.
func benchDaemons(b *testing.B, w *stateTester, o Objects, market catalog.Market) {
	put := w.feeds[reflect.TypeFor[*appsv1.DaemonSet]()].put
	b.ReportAllocs()
	turn := 0
	for b.Loop() {
		turn++
		set := o.DaemonSets[4].DeepCopy() // it has no pods, so the requests of its template are used
		set.Spec.Template.Spec.Containers[0] = kubetest.Container(fmt.Sprint(1+turn%2, "m"), "1Mi")
		put(set)
		if got := w.state.snapshot(kubetest.Noon, market, nil); len(got.Nodes) != largeClusterNodes {
			b.Fatalf("%d nodes, want %d", len(got.Nodes), largeClusterNodes)
		}
	}
}

// benchPending is benchEvents with 100 changes while 5,000 pods need a node.
func benchPending(b *testing.B, w *stateTester, o Objects, market catalog.Market) {
	feed := w.feeds[reflect.TypeFor[*corev1.Pod]()]
	var pods []*corev1.Pod
	for i := range 5_000 {
		pod := workloadPod(i%300, fmt.Sprint("pending-", i))
		pod.Status.Conditions = kubetest.PendingPod("").Status.Conditions
		pods = append(pods, pod)
		feed.put(pod)
	}
	benchEvents(b, w, o, market, 100)
	for _, pod := range pods {
		feed.drop(pod)
	}
}

func benchPlan(b *testing.B, w *stateTester, market catalog.Market, workloads int) {
	feed := w.feeds[reflect.TypeFor[*corev1.Pod]()]
	b.ReportAllocs()
	turn := 0
	for b.Loop() {
		var pods []*corev1.Pod
		for i := range 100 {
			turn++
			pod := workloadPod(i%workloads, fmt.Sprint("new-", turn))
			if i%workloads == 0 {
				pod.Spec.NodeSelector = map[string]string{catalog.LabelZone: "us-east-1b"}
			}
			pod.Status.Conditions = kubetest.PendingPod("").Status.Conditions
			pods = append(pods, pod)
			feed.put(pod)
		}
		snapshot := w.state.snapshot(kubetest.Noon, market, nil)
		plan := packing.Solve(snapshot, market, packing.DefaultEffort)
		if len(snapshot.Pods) != 100 || len(plan.Refusals) > 0 || len(plan.PlannedNodes) == 0 {
			b.Fatalf("%d pods, want 100; %d planned nodes, want some; refused %v, want none",
				len(snapshot.Pods), len(plan.PlannedNodes), plan.Refusals)
		}
		for _, pod := range pods {
			feed.drop(pod)
		}
	}
}

func generalMarket(b *testing.B) catalog.Market {
	table, err := catalog.Embedded()
	if err != nil {
		b.Fatal(err)
	}
	general, err := table.Catalog("us-east-1", catalog.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	return catalog.Market{"default": general}
}

// largeCluster returns a typical large cluster: 1,500 workloads in 100 namespaces, on nearly full instances in three
// zones. About one pod in 5 is spread, one in 10 has anti-affinity to its own workload, and one in 15 has a volume.
func largeCluster(nodes int) Objects {
	o := uniformCluster(0, 0, 0) // only DaemonSets
	pool := kubetest.GeneralPool()
	pool.Spec.Template.Labels = nil
	pool.Spec.Limits = nil
	pool.Spec.Template.Spec.Requirements = karpv1.Requirements{
		{Key: catalog.LabelOS, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}},
		{Key: awsv1.LabelInstanceCategory, Operator: corev1.NodeSelectorOpIn, Values: []string{"c", "m", "r"}},
	}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.StatusConditions().Set(kubetest.Noon, metav1.Condition{Type: karpv1.ConditionReady, Status: metav1.ConditionTrue})
	o.Pools, o.Classes = []*karpv1.NodePool{pool}, []*awsv1.EC2NodeClass{class}
	for i := range 100 {
		name := fmt.Sprint("team-", i)
		o.Namespaces = append(o.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": name}}})
	}
	for i := range 500 {
		o.Budgets = append(o.Budgets, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("team-", i%100), Name: fmt.Sprint("budget-", i)},
			Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1)),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("app-", i)}}},
		})
	}
	o.StorageClasses = []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "gp3"}, Provisioner: conversion.DriverEBS,
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}}
	for i := range nodes {
		addLargeClusterNode(&o, i)
	}
	return o
}

func addLargeClusterNode(o *Objects, i int) {
	zone := fmt.Sprint("us-east-1", string(rune('a'+i%3)))
	id, name := fmt.Sprintf("aws:///%s/i-%017x", zone, i), fmt.Sprintf("ip-10-%d-%d-%d.ec2.internal", i>>16, i>>8&255, i&255)
	size := corev1.ResourceList{"cpu": resource.MustParse("15890m"), "memory": resource.MustParse("60Gi"), "pods": resource.MustParse("58"),
		"ephemeral-storage": resource.MustParse("100Gi"), "hugepages-2Mi": resource.MustParse("0")}
	labels := map[string]string{
		karpv1.LabelNodePool: "general", karpv1.LabelRegistered: "true", karpv1.LabelInitialized: "true", catalog.LabelZone: zone,
		catalog.LabelArch: "amd64", catalog.LabelOS: "linux", catalog.LabelInstanceType: "m7i.4xlarge", catalog.LabelCapacityType: "on-demand",
		catalog.LabelRegion: "us-east-1", corev1.LabelHostname: name, awsv1.LabelInstanceCategory: "m", awsv1.LabelInstanceGeneration: "7",
		awsv1.LabelInstanceFamily: "m7i", awsv1.LabelInstanceCPU: "16", awsv1.LabelInstanceMemory: "65536", awsv1.LabelInstanceSize: "4xlarge",
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("general-%05d", i),
		UID: types.UID(fmt.Sprint("claim-", i)), Labels: labels,
		Annotations: map[string]string{conversion.AnnotationPods: "team-1/a,team-2/b,team-3/c"}}}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	claim.Status = karpv1.NodeClaimStatus{ProviderID: id, NodeName: name, Capacity: size, Allocatable: size}
	claim.StatusConditions().SetTrue(kubetest.Noon.AddDate(0, 0, -1), karpv1.ConditionRegistered)
	claim.StatusConditions().SetTrue(kubetest.Noon.AddDate(0, 0, -1), karpv1.ConditionInitialized)
	o.Claims = append(o.Claims, claim)
	o.Nodes = append(o.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(id), Labels: labels},
		Spec: corev1.NodeSpec{ProviderID: id}, Status: corev1.NodeStatus{Capacity: size, Allocatable: size}})
	o.CSINodes = append(o.CSINodes, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: conversion.DriverEBS, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(int32(27))}}}}})
	for p := range podsPerNode {
		pod := workloadPod((i*podsPerNode+p*37)%1500, fmt.Sprintf("%05d-%02d", i, p))
		if p < 4 {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: fmt.Sprint("daemon-", p),
				UID: types.UID(fmt.Sprint("d", p)), Controller: ptr.To(true)}}
			pod.Namespace, pod.Labels, pod.Spec.Affinity, pod.Spec.TopologySpreadConstraints = "kube-system",
				map[string]string{"app": fmt.Sprint("daemon-", p)}, nil, nil
			pod.Spec.Containers = []corev1.Container{kubetest.Container("50m", "64Mi")}
		} else if p%20 == 5 {
			addPodVolume(o, pod, zone)
		}
		pod.Spec.NodeName, pod.Status.Phase = name, corev1.PodRunning
		o.Pods = append(o.Pods, pod)
	}
}

// workloadPod returns a pod of the workload with this number. The last digit decides which constraints the pod has.
func workloadPod(workload int, name string) *corev1.Pod {
	app := fmt.Sprint("app-", workload)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("team-", workload%100), Name: app + "-" + name, UID: types.UID("uid-" + app + name), ResourceVersion: "1",
			CreationTimestamp: metav1.Time{Time: kubetest.Noon.AddDate(0, 0, -1)},
			Labels: map[string]string{"app": app, "pod-template-hash": fmt.Sprint(workload * 7919), "app.kubernetes.io/managed-by": "helm",
				"app.kubernetes.io/part-of": fmt.Sprint("team-", workload%100), "version": "v1"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app + "-1", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{kubetest.Container(fmt.Sprint(400+workload%10*40, "m"),
				fmt.Sprint(1000+workload%7*200, "Mi")), kubetest.Container("10m", "32Mi")},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
			Volumes: []corev1.Volume{{Name: "token"}},
		},
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	if workload%2 == 0 {
		pod.Spec.NodeSelector = map[string]string{catalog.LabelArch: "amd64"}
	}
	switch workload % 10 {
	case 1, 2:
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{TopologyKey: catalog.LabelZone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector},
			{TopologyKey: corev1.LabelHostname, MaxSkew: 5, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector},
		}
	case 3:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: selector}}}}
	}
	return pod
}

func addPodVolume(o *Objects, pod *corev1.Pod, zone string) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "data-" + pod.Name,
		Annotations: map[string]string{conversion.AnnotationBound: "yes"}}}
	claim.Spec.VolumeName, claim.Spec.StorageClassName = "pv-"+pod.Name, ptr.To("gp3")
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: conversion.DriverEBS, VolumeHandle: claim.Spec.VolumeName}
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: catalog.LabelZone, Operator: corev1.NodeSelectorOpIn,
			Values: []string{zone}}}}}}}
	o.VolumeClaims, o.Volumes = append(o.VolumeClaims, claim), append(o.Volumes, volume)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}})
}
