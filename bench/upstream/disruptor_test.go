package upstream

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

const cent = catalog.Dollar / 100

// cores returns an instance type with n cores, each of which costs one cent per hour.
func cores(n int64) catalog.Type {
	full := resources.Amounts{CPU: 1000 * n, Memory: 4 * n << 30, Pods: 30}
	t := catalog.Type{Name: fmt.Sprintf("any.%d", n), Capacity: full, Allocatable: full, Labels: requirements.Labels{
		catalog.LabelInstanceType: fmt.Sprintf("any.%d", n), catalog.LabelArch: "amd64", catalog.LabelOS: "linux",
	}}
	return t.WithOfferings([]catalog.Offering{{Zone: "a", CapacityType: catalog.OnDemand, Price: cent * catalog.Price(n), Available: true}})
}

// halfEmpty returns a cluster with three nodes: four cores with a pod of one core, four cores without pods, and eight
// cores with a pod of one core.
func halfEmpty() *fleet.Fleet {
	p := &karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "uid-general"},
	}
	p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	p.Spec.Template.Spec.Requirements = karpv1.Requirements{ // otherwise upstream would launch spot, which is not offered
		{Key: catalog.LabelCapacityType, Operator: corev1.NodeSelectorOpIn, Values: []string{catalog.OnDemand}},
	}
	p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmptyOrUnderutilized
	p.Spec.Disruption.ConsolidateAfter = karpv1.After(0)
	p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	market := catalog.Market{"default": {Types: []catalog.Type{cores(2), cores(4), cores(8)}}}
	f := fleet.New([]*karpv1.NodePool{p}, market)
	place := func(name string, typ catalog.Type, podNames ...string) {
		var pods []*corev1.Pod
		for _, podName := range podNames {
			pods = append(pods, podOfOneCore(podName))
		}
		f.Place(fleet.Order{Name: name, Pool: "general", Class: "default", Type: typ, Offering: typ.Offerings[0]}, pods)
	}
	place("a", cores(4), "1")
	place("b", cores(4))
	place("c", cores(8), "2")
	return f
}

func podOfOneCore(name string) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "x", Name: name, UID: types.UID("uid-" + name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "some", Controller: &yes}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
		}}}}},
	}
}

// TestDisrupt: upstream removes the empty node, and consolidates until one small node is left. No pod becomes pending,
// because upstream's commands continue only when their replacement nodes are ready.
func TestDisrupt(t *testing.T) {
	t.Parallel()
	f := halfEmpty()
	d, err := Disrupt(f, false, func() float64 { return 0 }) // upstream's work takes no simulated time
	if err != nil {
		t.Fatal(err)
	}
	var prices []catalog.Price
	for f.Since() < time.Hour {
		delay, err := d.Pass()
		if err != nil {
			t.Fatal(err)
		}
		d.Wait(max(delay, time.Second))
		if f.PendingPods() > 0 {
			t.Fatalf("after %s %d pods are pending, want none", f.Since(), f.PendingPods())
		}
		if n := len(prices); n == 0 || prices[n-1] != f.Price() {
			prices = append(prices, f.Price())
		}
	}
	if d.Busy() || f.Price() != 2*cent || len(f.Instances()) != 1 {
		t.Errorf("after an hour there are %d nodes for %s, busy %t; want one with 2 cores for 2 cents, not busy; prices so far: %v",
			len(f.Instances()), f.Price(), d.Busy(), prices)
	}
	if f.Moved() < 2 || f.Moved() > 4 { // both pods must move, and may move twice
		t.Errorf("%d pods were moved, want 2 to 4", f.Moved())
	}
	if last := f.Instances()[0]; last.PodCount() != 2 {
		t.Errorf("the last node has %d pods, want 2", last.PodCount())
	}
}
