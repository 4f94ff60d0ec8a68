package snapshot

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// TestPlannedRoomIsGone: kube-scheduler may bind any pod to a new node. If the new node then lacks room for a pod that
// it was launched for, this pod must be planned again immediately. Otherwise another node, which has room for the pod
// now, would seem empty and would be removed.
func TestPlannedRoomIsGone(t *testing.T) {
	t.Parallel()
	const whole, half, little = "1200m", "900m", "100m" // of the 1930m of the node
	type pods map[string]string                         // CPU requests by pod
	cases := map[string]struct {
		bound   pods     // bound to the node
		planned pods     // planned for the node
		want    []string // the pods on the node
		others  []string // the planned pods that need another node
	}{
		"no pod is bound, and the node has less room than planned": {planned: pods{"a": whole, "b": whole}, want: []string{"a", "b"}},
		"another pod uses the room": {bound: pods{"x": whole}, planned: pods{"a": whole},
			want: []string{"x"}, others: []string{"a"}},
		"another pod is bound, and room is left": {bound: pods{"x": little}, planned: pods{"a": whole}, want: []string{"a", "x"}},
		"only one of two planned pods has room": {bound: pods{"x": half}, planned: pods{"a": half, "b": half},
			want: []string{"a", "x"}, others: []string{"b"}},
		"only the smaller of two planned pods has room": {bound: pods{"x": half}, planned: pods{"a": whole, "b": half},
			want: []string{"b", "x"}, others: []string{"a"}},
		"one planned pod is bound, and the other fits": {bound: pods{"a": half}, planned: pods{"a": half, "b": half}, want: []string{"a", "b"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o Objects
			node := uniformCluster(0, 1, 0).Nodes[0]
			node.Name, node.Spec.ProviderID = "n", "aws:///us-east-1a/i-1"
			node.Labels = map[string]string{karpv1.LabelNodePool: "general", karpv1.LabelRegistered: "true", karpv1.LabelInitialized: "true"}
			node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1930m"),
				"memory": resource.MustParse("8Gi"), "pods": resource.MustParse("29")}
			claim := unlaunchedClaim("c")
			claim.Status.ProviderID, claim.Status.NodeName = node.Spec.ProviderID, node.Name
			claim.StatusConditions().SetTrue(kubetest.Noon, karpv1.ConditionInitialized)
			claim.Annotations = map[string]string{conversion.AnnotationPods: strings.Join(ids(c.planned), ",")}
			o.Nodes, o.Claims = []*corev1.Node{node}, []*karpv1.NodeClaim{claim}
			for name, cpu := range c.bound {
				pod := kubetest.PendingPod(name)
				pod.Spec.NodeName = node.Name
				pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
				o.Pods = append(o.Pods, pod)
			}
			for name, cpu := range c.planned {
				if c.bound[name] != "" {
					continue
				}
				pod := kubetest.PendingPod(name)
				pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
				o.Pods = append(o.Pods, pod)
			}
			for _, p := range o.Pods {
				p.CreationTimestamp = metav1.Time{Time: kubetest.Noon}
			}
			got := o.Snapshot(View{Now: kubetest.Noon, Live: true})
			on := podNames(got.Nodes[0].Pods)
			if !slices.Equal(on, c.want) || !slices.Equal(podNames(got.Pods), c.others) {
				t.Errorf("on the node are %v, want %v; %v need another node, want %v", on, c.want, podNames(got.Pods), c.others)
			}
			w := newWorld(View{Live: true})
			w.send(o)
			if diff := gocmp.Diff(kubetest.Render(got), kubetest.Render(w.state.snapshot(kubetest.Noon, nil, nil))); diff != "" {
				t.Errorf("the snapshot of the state differs from that of its objects (-objects +state):\n%s", diff)
			}
		})
	}
}

func ids(names map[string]string) []string {
	var out []string
	for name := range names {
		out = append(out, "default/"+name)
	}
	slices.Sort(out)
	return out
}

func podNames(pods []cluster.Pod) []string {
	var out []string
	for i := range pods {
		out = append(out, pods[i].Name)
	}
	return out
}
