package snapshot

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// daemonSet returns a DaemonSet with this CPU request, created age before kubetest.BlockingTime.
func daemonSet(namespace, name, cpu string, age time.Duration, change func(*corev1.PodSpec)) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
		CreationTimestamp: metav1.NewTime(kubetest.BlockingTime.Add(-age))}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	if change != nil {
		change(&set.Spec.Template.Spec)
	}
	return set
}

// withPorts adds count host ports: first, first+1 and so on.
func withPorts(first, count int) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		for i := range count {
			spec.Containers[0].Ports = append(spec.Containers[0].Ports,
				corev1.ContainerPort{HostPort: int32(first + i), ContainerPort: int32(first + i)})
		}
	}
}

func namesOf(daemons []cluster.Daemon, namespace string) (out []string) {
	for _, d := range daemons {
		if d.Namespace == namespace {
			out = append(out, d.Name)
		}
	}
	return out
}

// TestManyDaemonSets: if the DaemonSets of a namespace exceed MaxDaemonCost, only the oldest of them are counted. All
// DaemonSets of kube-system and of other namespaces are counted nevertheless.
func TestManyDaemonSets(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.PodSpec){
		"plain": nil, // cost 1 each; ports and terms cost more
		"ports": withPorts(10_000, 400),
		"terms": func(spec *corev1.PodSpec) {
			selector := &corev1.NodeSelector{}
			for i := range 100 {
				selector.NodeSelectorTerms = append(selector.NodeSelectorTerms,
					corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "k", Operator: corev1.NodeSelectorOpNotIn, Values: []string{fmt.Sprint(i)}}}})
			}
			spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
		},
	} {
		var o Objects
		for i := range 1_000 {
			o.DaemonSets = append(o.DaemonSets, daemonSet("tenant", fmt.Sprintf("d%04d", i), "0", time.Duration(i)*time.Second, change))
		}
		for i := range 600 {
			o.DaemonSets = append(o.DaemonSets, daemonSet("kube-system", fmt.Sprintf("d%04d", i), "0", 0, nil))
		}
		o.DaemonSets = append(o.DaemonSets, daemonSet("other", "agent", "100m", 0, withPorts(9000, 2)))
		daemons := o.Snapshot(View{Now: kubetest.BlockingTime}).Daemons
		if n := len(namesOf(daemons, "kube-system")); n != 600 {
			t.Errorf("%s: %d DaemonSets of kube-system are counted, want 600", name, n)
		}
		if n := len(namesOf(daemons, "other")); n != 1 {
			t.Errorf("%s: %d DaemonSets of another namespace are counted, want 1", name, n)
		}
		counted := namesOf(daemons, "tenant")
		if len(counted) == 0 || len(counted) > conversion.MaxDaemonCost || counted[len(counted)-1] != "d0999" {
			t.Errorf("%s: %d DaemonSets of the tenant are counted, the last is %v; want up to MaxDaemonCost, the last d0999 (the oldest)",
				name, len(counted), counted[max(0, len(counted)-1):])
		}
	}
}

// TestDaemonBeyondNode: a DaemonSet pod whose requests exceed a node never runs there, and is not counted.
func TestDaemonBeyondNode(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("110")}}}
	o := Objects{Nodes: []*corev1.Node{node}, DaemonSets: []*appsv1.DaemonSet{
		daemonSet("tenant", "huge", "1000", 0, withPorts(80, 1)), daemonSet("tenant", "small", "1", 0, withPorts(81, 1))}}
	n := o.Snapshot(View{Now: kubetest.BlockingTime}).Nodes[0]
	hasHugePort := slices.ContainsFunc(n.HostPorts, func(p cluster.HostPort) bool { return p.Port == 80 })
	if n.Requested.CPU != 1000 || hasHugePort || len(n.HostPorts) != 1 || len(n.Residents) != 1 {
		t.Errorf("the node is %+v, want only the pod of DaemonSet small on it", n)
	}
}
