package snapshot

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// The any functions return random objects. These share a few names, so that they often refer to each other, and
// sometimes to a missing object.

// pick returns one of the choices. Here and below, what names the choice in rapid's output.
func pick[T any](t *rapid.T, what string, choices ...T) T {
	return choices[rapid.IntRange(0, len(choices)-1).Draw(t, what)]
}

func chance(t *rapid.T, what string, n int) bool { return rapid.IntRange(1, n).Draw(t, what) == 1 }

func anyName(t *rapid.T, prefix string, count int) string {
	return fmt.Sprint(prefix, rapid.IntRange(0, count-1).Draw(t, prefix))
}

func anyNamespace(t *rapid.T) string { return pick(t, "namespace", "a", "b") }

func anyObject(t *rapid.T, now time.Time) client.Object {
	switch rapid.IntRange(0, 21).Draw(t, "kind") {
	case 0, 1:
		return anyNode(t)
	case 2, 3:
		return anyClaim(t, now)
	case 4, 5:
		return anyVolumeClaim(t)
	case 6:
		return anyVolume(t)
	case 7:
		return anyStorageClass(t)
	case 8:
		return anyBudget(t)
	case 9:
		return anyDaemonSet(t)
	case 10:
		return anyCSINode(t)
	case 11:
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pick(t, "namespace", "a", "b", "c"),
			Labels: pick(t, "labels", nil, map[string]string{"team": "x"})}}
	case 12:
		return pick[client.Object](t, "pool", anyPool(t), anyNodeClass(t))
	case 13:
		return anySelectingObject(t)
	}
	return anyPod(t, now)
}

func anyMeta(t *rapid.T, namespace, name string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(pick(t, "uid", "", "u1-", "u2-") + namespace + name)}
	if out.UID == types.UID(namespace+name) { // the picked prefix is empty
		out.UID = ""
	}
	out.CreationTimestamp.Time = kubetest.Noon.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Minute)
	if chance(t, "deleted", 8) {
		out.DeletionTimestamp = &metav1.Time{Time: kubetest.Noon}
	}
	return out
}

func anyLabels(t *rapid.T) map[string]string {
	return pick(t, "labels", nil, map[string]string{"app": "web"}, map[string]string{"app": "db"},
		map[string]string{"app": "web", "version": "2"})
}

func anySelector(t *rapid.T) *metav1.LabelSelector {
	return pick(t, "selector", nil, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"version": "2"}})
}

func anyPod(t *rapid.T, now time.Time) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: anyMeta(t, anyNamespace(t), anyName(t, "p", 7))}
	pod.Labels = anyLabels(t)
	pod.OwnerReferences = pick(t, "owner", nil, owner("ReplicaSet", "web-1"), owner("ReplicaSet", "web-2"), owner("StatefulSet", "db"),
		owner("DaemonSet", "d0"), owner("DaemonSet", "d1"), owner("Node", "n0"))
	pod.Spec.Containers = []corev1.Container{kubetest.Container(pick(t, "cpu", "100m", "250m", "2"), pick(t, "memory", "64Mi", "1Gi"))}
	if chance(t, "host port", 5) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	}
	pod.Spec.NodeSelector = pick(t, "node selector", nil, map[string]string{catalog.LabelArch: "amd64"})
	pod.Spec.Tolerations = pick(t, "tolerations", nil, []corev1.Toleration{{Operator: corev1.TolerationOpExists}})
	addConstraints(t, pod)
	setPlacement(t, pod, now)
	return pod
}

// owner uses UIDs of anyDaemonSet: only DaemonSets are matched by UID.
func owner(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID("u1-kube-system" + name), Controller: ptr.To(true)}}
}

func addConstraints(t *rapid.T, pod *corev1.Pod) {
	for range rapid.IntRange(0, 2).Draw(t, "volumes") {
		v := corev1.Volume{Name: anyName(t, "data", 2)}
		if chance(t, "ephemeral", 3) {
			v.Ephemeral = &corev1.EphemeralVolumeSource{}
		} else {
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: anyName(t, "c", 3)}
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v)
	}
	if chance(t, "spread", 4) {
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: catalog.LabelZone, LabelSelector: anySelector(t),
			WhenUnsatisfiable: pick(t, "spread", corev1.DoNotSchedule, corev1.ScheduleAnyway),
		}}
	}
	term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: anySelector(t),
		NamespaceSelector: pick(t, "namespaces", nil, &metav1.LabelSelector{},
			&metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}})}
	required, preferred := []corev1.PodAffinityTerm{term}, []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term}}
	a := &corev1.Affinity{}
	switch rapid.IntRange(0, 9).Draw(t, "affinity") {
	case 0:
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
	case 1:
		a.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	case 2:
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
	case 3:
		a.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	default:
		return
	}
	pod.Spec.Affinity = a
}

// setPlacement binds the pod, nominates a node or leaves it pending, and sometimes protects it from disruption.
func setPlacement(t *rapid.T, pod *corev1.Pod, now time.Time) {
	pod.Status.Phase = pick(t, "phase", corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded)
	if chance(t, "bound", 2) {
		pod.Spec.NodeName = anyName(t, "n", 5)
	} else if !chance(t, "not tried", 4) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
	}
	if chance(t, "nominated", 10) {
		pod.Status.NominatedNodeName = anyName(t, "n", 6)
	}
	if chance(t, "protected", 2) {
		pod.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: pick(t, "protection", "true", "30s", "1m", "nonsense")}
		pod.Status.StartTime = pick(t, "start", nil, &metav1.Time{Time: now}, &metav1.Time{Time: kubetest.Noon})
	}
}

func anyNode(t *rapid.T) *corev1.Node {
	n := &corev1.Node{ObjectMeta: anyMeta(t, "", anyName(t, "n", 5))}
	n.Labels = map[string]string{karpv1.LabelNodePool: pick(t, "pool", "general", "other")}
	if !chance(t, "not registered", 4) {
		n.Labels[karpv1.LabelRegistered] = "true"
	}
	if !chance(t, "not initialized", 3) {
		n.Labels[karpv1.LabelInitialized] = "true"
	}
	n.Labels[catalog.LabelArch] = pick(t, "arch", "amd64", "arm64")
	n.Spec.ProviderID = anyProviderID(t)
	n.Spec.Unschedulable = chance(t, "cordoned", 8)
	n.Spec.Taints = pick(t, "taints", nil, []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}},
		[]corev1.Taint{{Key: karpv1.TaintDisrupted, Effect: corev1.TaintEffectNoSchedule}})
	n.Status.Capacity = anySize(t)
	n.Status.Allocatable = pick(t, "allocatable", nil, n.Status.Capacity)
	return n
}

func anyProviderID(t *rapid.T) string {
	return pick(t, "provider", "", "aws:///us-east-1a/i-0", "aws:///us-east-1a/i-1", "aws:///us-east-1b/i-2", "aws:///us-east-1b/i-3")
}

func anySize(t *rapid.T) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(pick(t, "cpus", "2", "8")), "memory": resource.MustParse("16Gi"),
		"pods": resource.MustParse("58")}
}

func anyClaim(t *rapid.T, now time.Time) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: anyMeta(t, "", anyName(t, "k", 6))}
	c.Labels = map[string]string{karpv1.LabelNodePool: "general", catalog.LabelInstanceType: "m7i.xlarge"}
	c.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	c.Spec.Requirements = karpv1.Requirements{{Key: catalog.LabelInstanceType, Operator: corev1.NodeSelectorOpIn,
		Values: pick(t, "types", []string{"c7g.large"}, []string{"m7i.xlarge", "c7g.large"})}}
	c.Spec.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	if c.Status.ProviderID = anyProviderID(t); c.Status.ProviderID != "" {
		c.Status.Capacity, c.Status.Allocatable = anySize(t), anySize(t)
	}
	c.Status.NodeName = pick(t, "node", "", anyName(t, "n", 5))
	if chance(t, "registered", 2) {
		c.StatusConditions().SetTrue(now, karpv1.ConditionRegistered)
	}
	if chance(t, "initialized", 2) {
		c.StatusConditions().SetTrue(now.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "since"))*time.Second), karpv1.ConditionInitialized)
	}
	if chance(t, "planned", 2) {
		var pods []string
		for range rapid.IntRange(1, 4).Draw(t, "pods") {
			pods = append(pods, anyNamespace(t)+"/"+anyName(t, "p", 7))
		}
		c.Annotations = map[string]string{conversion.AnnotationPods: strings.Join(pods, ",")}
		c.CreationTimestamp.Time = kubetest.Noon.Add(time.Minute) // planned pods are older than the claim
	}
	return c
}

func anyVolumeClaim(t *rapid.T) *corev1.PersistentVolumeClaim {
	name := anyName(t, "c", 3)
	if chance(t, "ephemeral", 3) {
		name = anyName(t, "p", 7) + "-" + anyName(t, "data", 2) // of the claim for the pod's ephemeral volume
	}
	c := &corev1.PersistentVolumeClaim{ObjectMeta: anyMeta(t, anyNamespace(t), name)}
	if chance(t, "complete", 2) {
		c.Annotations = map[string]string{conversion.AnnotationBound: "yes"}
	}
	c.Spec.VolumeName = pick(t, "volume", "", anyName(t, "v", 3))
	c.Spec.StorageClassName = pick(t, "class", nil, ptr.To("s0"), ptr.To("s1"))
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{pick(t, "mode", corev1.ReadWriteOnce, corev1.ReadWriteMany,
		corev1.ReadWriteOncePod)}
	return c
}

func anyVolume(t *rapid.T) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: anyMeta(t, "", anyName(t, "v", 3))}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: pick(t, "driver", conversion.DriverEBS, "fs.example.com"),
		VolumeHandle: anyName(t, "vol-", 3)}
	v.Labels = pick(t, "zone", nil, map[string]string{catalog.LabelZone: "us-east-1a"}, map[string]string{catalog.LabelZone: "us-east-1b"})
	return v
}

func anyStorageClass(t *rapid.T) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: anyMeta(t, "", anyName(t, "s", 2))}
	if chance(t, "default", 2) {
		c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	}
	c.Provisioner = pick(t, "driver", conversion.DriverEBS, "fs.example.com")
	c.VolumeBindingMode = pick(t, "mode", nil, ptr.To(storagev1.VolumeBindingWaitForFirstConsumer))
	return c
}

func anyBudget(t *rapid.T) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: anyMeta(t, anyNamespace(t), anyName(t, "b", 2))}
	b.Spec.Selector = anySelector(t)
	b.Spec.MaxUnavailable = pick(t, "most", nil, ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromInt32(1)))
	return b
}

func anyDaemonSet(t *rapid.T) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: anyMeta(t, "kube-system", anyName(t, "d", 2))}
	d.Spec.Template.Spec.Containers = []corev1.Container{kubetest.Container(pick(t, "cpu", "50m", "100m"), "64Mi")}
	d.Spec.Template.Spec.NodeSelector = pick(t, "node selector", nil, map[string]string{catalog.LabelArch: "amd64"})
	return d
}

// anyCSINode: a claim without a Node is a node with the claim's name.
func anyCSINode(t *rapid.T) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: anyMeta(t, "", pick(t, "node", anyName(t, "n", 5), anyName(t, "k", 6)))}
	if chance(t, "no drivers", 5) {
		return n
	}
	n.Spec.Drivers = []storagev1.CSINodeDriver{{Name: pick(t, "driver", conversion.DriverEBS, "fs.example.com"),
		Allocatable: pick(t, "limit", nil, &storagev1.VolumeNodeResources{Count: ptr.To(int32(2))})}}
	return n
}

func anyPool(t *rapid.T) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: anyMeta(t, "", pick(t, "pool", "general", "other"))}
	p.Spec.Template.Spec.NodeClassRef = pick(t, "class", nil,
		&karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"})
	p.Spec.Limits = pick(t, "limits", nil, corev1.ResourceList{"cpu": resource.MustParse("10")})
	return p
}

func anyNodeClass(t *rapid.T) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{ObjectMeta: anyMeta(t, "", "default")}
	if chance(t, "ready", 2) {
		c.StatusConditions().Set(kubetest.Noon, metav1.Condition{Type: karpv1.ConditionReady, Status: metav1.ConditionTrue})
	}
	return c
}

// anySelectingObject: its selector groups pods for the default spread constraints.
func anySelectingObject(t *rapid.T) client.Object {
	namespace := anyNamespace(t)
	switch rapid.IntRange(0, 3).Draw(t, "selecting kind") {
	case 0:
		return &corev1.Service{ObjectMeta: anyMeta(t, namespace, anyName(t, "svc", 2)), Spec: corev1.ServiceSpec{Selector: anyLabels(t)}}
	case 1:
		return &corev1.ReplicationController{ObjectMeta: anyMeta(t, namespace, "rc"), Spec: corev1.ReplicationControllerSpec{Selector: anyLabels(t)}}
	case 2:
		return &appsv1.ReplicaSet{ObjectMeta: anyMeta(t, namespace, pick(t, "name", "web-1", "web-2")),
			Spec: appsv1.ReplicaSetSpec{Selector: anySelector(t)}}
	}
	return &appsv1.StatefulSet{ObjectMeta: anyMeta(t, namespace, "db"), Spec: appsv1.StatefulSetSpec{Selector: anySelector(t)}}
}

func anyMarket(t *rapid.T) catalog.Market {
	if chance(t, "no market", 4) {
		return nil
	}
	small := catalog.Type{
		Name: "c7g.large", Labels: map[string]string{catalog.LabelArch: "arm64", catalog.LabelInstanceType: "c7g.large"},
		Capacity: resources.Amounts{CPU: 2000, Memory: 4 << 30, Pods: 29}, Allocatable: resources.Amounts{CPU: 1930, Memory: 3 << 30, Pods: 29},
		Volumes: pick(t, "attachable", int64(0), 25),
	}
	large := catalog.Type{
		Name: "m7i.xlarge", Labels: map[string]string{catalog.LabelArch: "amd64", catalog.LabelInstanceType: "m7i.xlarge"},
		Capacity:    resources.Amounts{CPU: 4000, Memory: 16 << 30, Pods: 58},
		Allocatable: resources.Amounts{CPU: 3920, Memory: pick(t, "memory", int64(14<<30), 13<<30), Pods: 58},
		Offerings:   []catalog.Offering{{Zone: "us-east-1a", CapacityType: catalog.Spot, Price: 1, Available: rapid.Bool().Draw(t, "available")}},
	}
	return catalog.Market{"default": {Types: []catalog.Type{small, large}}}
}
