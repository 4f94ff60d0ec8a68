package nodeclaim

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/fakeapi"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// podOf returns a pending pod of an app that requests one CPU.
func podOf(app, name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": app},
		CreationTimestamp: metav1.Unix(500, 0)}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1")}}}}
	return p
}

// spreadPod returns a pod of the app "spread", whose pods are spread over zones with maxSkew 1.
func spreadPod(name string) *corev1.Pod {
	p := podOf("spread", name)
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1,
		WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
	return p
}

// daemonPod makes the pod one of a DaemonSet that requests the CPUs.
func daemonPod(p *corev1.Pod, cpu string) *corev1.Pod {
	isController := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "daemon", Controller: &isController}}
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	return p
}

// claimOf returns a claim for pods that request one CPU each, and for a DaemonSet pod that requests one CPU.
func claimOf(name string, pods ...string) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(600, 0)}}
	conversion.SetPods(c, pods)
	n := int64(len(pods))
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n+1, resource.DecimalSI),
		corev1.ResourcePods: *resource.NewQuantity(n+1, resource.DecimalSI)}
	return c
}

// nodeIn returns a closed Node with 4 CPUs.
func nodeIn(zone, name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{conversion.NominationsTaint()}}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("10")}}}
}

func apiWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return fakeapi.New(t, scheme, kubeclient.Index, interceptor.Funcs{}, objects...)
}

// TestAssumedPods: two Nodes of zone a are closed, and one of zone b. The cache does not show the bindings. An assumed
// pod counts for the decisions that follow, and a forgotten one does not.
func TestAssumedPods(t *testing.T) {
	t.Parallel()
	first, second, other := claimOf("first", "ns/s1", "ns/s2", "ns/p1"), claimOf("second", "ns/s3"), claimOf("other", "ns/s4")
	nodes := map[*karpv1.NodeClaim]*corev1.Node{first: nodeIn("a", "n1"), second: nodeIn("a", "n2"), other: nodeIn("b", "n3")}
	api := apiWith(t, nodes[first], nodes[second], nodes[other], spreadPod("s1"), spreadPod("s2"), spreadPod("s3"), spreadPod("s4"),
		podOf("plain", "p1"))
	var a assumedPods
	now := time.Unix(1000, 0)
	decide := func(claim *karpv1.NodeClaim, bind, blocked []string) {
		t.Helper()
		d, err := a.decide(t.Context(), api, claim, nodes[claim], now)
		if err != nil || !slices.Equal(d.Bind, bind) || !slices.Equal(d.Blocked, blocked) {
			t.Errorf("claim %s: bind %v, blocked %v, %v; want %v and %v", claim.Name, d.Bind, d.Blocked, err, bind, blocked)
		}
	}
	decide(first, []string{"ns/s1", "ns/p1"}, []string{"ns/s2"})
	decide(second, nil, []string{"ns/s3"}) // s1 counts in zone a
	decide(other, []string{"ns/s4"}, nil)
	decide(first, []string{"ns/s2"}, nil) // s4 counts in zone b
	a.forget("ns/s2")
	decide(second, []string{"ns/s3"}, nil) // s2 does not count
	a.assume([]*corev1.Pod{spreadPod("s2")}, first.UID, "n1", now)
	decide(first, nil, nil)
	now = now.Add(assumeTTL + time.Second)
	decide(first, []string{"ns/s1", "ns/p1"}, []string{"ns/s2"}) // the cache has not shown the bindings, so they failed
}

// TestRoomForPlannedPods: the room of the Node is what the DaemonSet pods and the pods on the Node leave. Pods that only
// kube-scheduler can bind, and younger pods with the name of a planned pod, are not bound.
func TestRoomForPlannedPods(t *testing.T) {
	t.Parallel()
	onNode := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.NodeName = "n1"
		return p
	}
	withVolume, young, repelling := podOf("plain", "p2"), podOf("plain", "p2"), onNode(podOf("db", "db"))
	withVolume.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	young.CreationTimestamp = metav1.Unix(700, 0)
	repelling.Spec.NodeName = "elsewhere"
	repelling.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelTopologyZone,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}}
	for name, c := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"room for all":              {[]client.Object{podOf("plain", "p2"), podOf("plain", "p3")}, []string{"ns/p1", "ns/p2", "ns/p3"}},
		"a foreign pod on the Node": {[]client.Object{onNode(podOf("foreign", "f")), podOf("plain", "p2"), podOf("plain", "p3")}, []string{"ns/p1", "ns/p2"}},
		"a planned pod is gone":     {[]client.Object{podOf("plain", "p3")}, []string{"ns/p1", "ns/p3"}},
		"a pod with a volume":       {[]client.Object{withVolume, podOf("plain", "p3")}, []string{"ns/p1", "ns/p3"}},
		"a younger pod":             {[]client.Object{young, podOf("plain", "p3")}, []string{"ns/p1", "ns/p3"}},
		"a large DaemonSet pod":     {[]client.Object{daemonPod(onNode(podOf("daemon", "d")), "2"), podOf("plain", "p2"), podOf("plain", "p3")}, []string{"ns/p1", "ns/p2"}},
		"a pod repels another one":  {[]client.Object{repelling, podOf("web", "p2"), podOf("plain", "p3")}, []string{"ns/p1", "ns/p3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := nodeIn("a", "n1")
			api := apiWith(t, append(c.objects, node, podOf("plain", "p1"))...)
			d, err := new(assumedPods).decide(t.Context(), api, claimOf("claim", "ns/p1", "ns/p2", "ns/p3"), node, time.Unix(1000, 0))
			if err != nil || !slices.Equal(d.Bind, c.want) {
				t.Errorf("bind %v, %v; want %v", d.Bind, err, c.want)
			}
		})
	}
}
