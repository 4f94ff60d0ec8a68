package nodeclaim

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/fakeapi"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// TestExchangeOfAssignments: the Node "first" opens before another Node of its zone, and before the nodes of zone b. A
// spread allows only one of its two pods in zone a now. The other one exchanges its place with a pod of the claim "second".
func TestExchangeOfAssignments(t *testing.T) {
	t.Parallel()
	pod := func(app, name string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": app},
			CreationTimestamp: metav1.Unix(500, 0)}}
		p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1")}}}}
		if app == "spread" {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
		}
		return p
	}
	claim := func(name, zone string, pods ...string) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(600, 0),
			Labels: map[string]string{karpv1.LabelNodePool: "pool", corev1.LabelTopologyZone: zone}}}
		conversion.SetPods(c, pods)
		c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("10")}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("2")}
		return c
	}
	node := func(name, zone string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("10")}}}
	}
	first, second, other := claim("first", "a", "ns/s1", "ns/s2"), claim("second", "a", "ns/p1", "ns/p2"), claim("other", "b", "ns/p3", "ns/s3")
	opens := node("n1", "a")
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	api := fakeapi.New(t, scheme, kubeclient.Index, interceptor.Funcs{}, first, second, other, opens, node("n2", "b"),
		pod("spread", "s1"), pod("spread", "s2"), pod("spread", "s3"), pod("plain", "p1"), pod("plain", "p2"), pod("plain", "p3"))
	a, now := assignments{}, time.Unix(1000, 0)
	decision, changed, err := a.decide(t.Context(), api, first, opens, now)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"ns/s1", "ns/p1"}; !slices.Equal(decision.Bind, want) || len(decision.Blocked) > 0 {
		t.Errorf("%v are bound and %v are blocked, want %v bound", decision.Bind, decision.Blocked, want)
	}
	names := []string{}
	for _, c := range changed {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"second", "first"}) {
		t.Errorf("the claims %v changed, want second and first", names)
	}
	for c, want := range map[*karpv1.NodeClaim][]string{first: {"ns/s1", "ns/p1"}, second: {"ns/p2", "ns/s2"}, other: {"ns/p3", "ns/s3"}} {
		if got := a.podsOf(c); !slices.Equal(got, want) {
			t.Errorf("claim %s is for %v, want %v", c.Name, got, want)
		}
	}
	// s1 counts in zone a although it is not bound yet, so s2 is still not allowed there.
	decision, changed, err = a.decide(t.Context(), api, second, node("n3", "a"), now.Add(time.Second))
	if err != nil || len(changed) > 0 {
		t.Errorf("%d claims changed, %v; want none, because no later node is in zone a", len(changed), err)
	}
	if !slices.Equal(decision.Bind, []string{"ns/p2"}) || !slices.Equal(decision.Blocked, []string{"ns/s2"}) {
		t.Errorf("%v are bound and %v are blocked, want p2 and s2", decision.Bind, decision.Blocked)
	}
	// No pod that is younger than the claim is exchanged.
	old := first.DeepCopy()
	old.CreationTimestamp = metav1.Unix(400, 0)
	if _, changed, err = new(assignments).decide(t.Context(), api, old, opens, now); err != nil || len(changed) > 0 {
		t.Errorf("%d claims changed, %v; want none, because the pods are younger than the claim", len(changed), err)
	}
	a.forget(first.UID)
	if got := a.podsOf(first); !slices.Equal(got, []string{"ns/s1", "ns/s2"}) {
		t.Errorf("after forget, claim first is for %v, want the pods of its annotation", got)
	}
}
