package kubetest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/fakeapi"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// WebPod returns a pod of the ReplicaSet web-1 with small requests.
func WebPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"kubernetes.io/arch": "amd64"},
			Containers:   []corev1.Container{Container("250m", "256Mi"), Container("10m", "32Mi")},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
			Volumes: []corev1.Volume{{Name: "token"}},
		},
	}
}

// Container returns a container with these requests.
func Container(cpu, memory string) corev1.Container {
	return corev1.Container{Name: "c" + cpu, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory),
	}}}
}

// DaemonSet returns a DaemonSet with small requests that tolerates all taints. Its name and UID contain i.
func DaemonSet(i int) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprint("daemon-", i), UID: types.UID(fmt.Sprint("d", i))},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
			Containers:   []corev1.Container{Container("50m", "64Mi")},
			Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		}}},
	}
}

// Marshal returns v as JSON.
func Marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// BlockingTime is the current time in tests about pods that block the disruption of their node.
var BlockingTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// BoundPod returns a pod of the Deployment app in namespace a, on the node n. The pod has the label app, is Ready, and
// started an hour before BlockingTime.
func BoundPod(name, app string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: map[string]string{"app": app, "pod-template-hash": "5d4f"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app + "-5d4f", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: BlockingTime.Add(-time.Hour)},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// PendingPod returns a pod that kube-scheduler could not schedule.
func PendingPod(name string) *corev1.Pod {
	pod := WebPod(name)
	pod.Status.Conditions = []corev1.PodCondition{{
		Type:   corev1.PodScheduled,
		Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable,
	}}
	return pod
}

// Render returns a snapshot as text, complete except for times.
func Render(s cluster.Snapshot) string {
	var b strings.Builder
	for _, p := range s.Pools {
		renderPool(&b, p)
	}
	for _, n := range s.Nodes {
		renderNode(&b, n)
	}
	for _, d := range s.Daemons {
		fmt.Fprintf(&b, "daemon %s/%s\n", d.Namespace, d.Name)
		renderField(&b, "requests", d.Requests.String())
		renderAlternatives(&b, d.Required)
		renderTolerations(&b, d.Tolerations)
		renderPorts(&b, d.HostPorts)
		renderField(&b, "labels", labelText(d.Kind.Labels))
		for _, t := range d.Kind.RequiredAntiAffinity {
			renderField(&b, "avoids", fmt.Sprintf("%s by %s", t.Selector.Labels, t.Key))
		}
	}
	for _, p := range s.Pods {
		renderPod(&b, p)
	}
	return b.String()
}

// SpreadText returns a spread constraint as text.
func SpreadText(c cluster.Spread) string {
	text := fmt.Sprintf("%s maxSkew=%d", c.Key, c.MaxSkew)
	if c.MinDomains != 0 {
		text += fmt.Sprintf(" minDomains=%d", c.MinDomains)
	}
	for _, option := range []struct {
		set  bool
		name string
	}{{c.Soft, "soft"}, {c.IgnoresNodeAffinity, "anyNode"}, {c.HonorTaints, "honorTaints"}} {
		if option.set {
			text += " " + option.name
		}
	}
	return text + " " + selectorText(c.Selector)
}

// Rewrite makes Golden write the test results into its files instead of comparing them.
var Rewrite = flag.Bool("rewrite", false, "write what the tests find into testdata, to be reviewed as a diff")

// Noon is the time of all snapshots in tests.
var Noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// Golden compares got with the content of file. With -rewrite it writes got into the file instead.
func Golden(t *testing.T, file, got string) {
	t.Helper()
	if *Rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run the test with -rewrite and review what it writes", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// SmallPod returns a pod of the ReplicaSet web with one container, which requests 250m of CPU.
func SmallPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u", Controller: new(true)}}}}
	pod.Spec.Containers = []corev1.Container{{
		Name:      "main",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}},
	}}
	return pod
}

// FakeClient returns a client of an in-memory API server with the scheme and the indexes of kubeclient; see fakeapi.New.
func FakeClient(t testing.TB, hooks interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return fakeapi.New(t, scheme, kubeclient.Index, hooks, objects...)
}

// GeneralPool returns the NodePool general, which uses the EC2NodeClass default.
func GeneralPool() *karpv1.NodePool {
	grace := karpv1.Duration{Duration: time.Hour}
	return &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "p1", Annotations: map[string]string{
			karpv1.AnnotationNodePoolHash: "123", karpv1.AnnotationNodePoolHashVersion: "v3", "other": "x",
		}},
		Spec: karpv1.NodePoolSpec{Template: karpv1.NodeClaimTemplate{
			ObjectMeta: karpv1.ObjectMeta{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "y"}},
			Spec: karpv1.NodeClaimTemplateSpec{
				NodeClassRef:           &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"},
				TerminationGracePeriod: &grace,
				ExpireAfter:            karpv1.After(48 * time.Hour),
			},
		}},
	}
}

// PlannedNode returns a planned node of the NodePool general for these pods.
func PlannedNode(pods ...string) packing.PlannedNode {
	return packing.PlannedNode{
		Name: "general-1", Pool: "general", NodeClass: "default",
		Requirements: []requirements.Requirement{
			{Key: "custom", Operator: requirements.In, Values: []string{"b", "a"}},
			{Key: "karpenter.k8s.aws/instance-family", Operator: requirements.Exists, MinValues: 2},
			{Key: "karpenter.sh/capacity-type", Operator: requirements.In, Values: []string{"on-demand", "spot"}},
			{Key: "kubernetes.io/arch", Operator: requirements.In, Values: []string{"amd64"}},
			{Key: "node.kubernetes.io/instance-type", Operator: requirements.Exists, MinValues: 2},
			{Key: "not-there", Operator: requirements.NotIn, Values: []string{"x"}},
			{Key: "number", Operator: requirements.Gte, Values: []string{"7"}},
			{Key: "there", Operator: requirements.Exists},
		},
		Labels:        requirements.Labels{"team": "a", "karpenter.sh/initialized": "true"},
		Taints:        []requirements.Taint{{Key: "dedicated", Value: "a", Effect: requirements.NoSchedule}},
		StartupTaints: []requirements.Taint{{Key: "cni", Effect: requirements.NoExecute}},
		Pods:          pods,
		Requests:      resources.Amounts{CPU: 1500, Memory: 3 << 30, Pods: 7}.With("nvidia.com/gpu", 1),
		Offerings: []packing.Choice{
			{InstanceType: "t3.small", Zone: "us-east-1b", CapacityType: "spot"},
			{InstanceType: "t2.small", Zone: "us-east-1a", CapacityType: "spot"},
			{InstanceType: "t3.small", Zone: "us-east-1a", CapacityType: "spot"},
		},
	}
}
