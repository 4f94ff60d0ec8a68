package fleet

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

const cent = catalog.Dollar / 100

// node returns an order of a node with the given number of cores. Each core comes with 4 GiB and costs one cent per
// hour.
func node(name string, cores int64) Order {
	room := resources.Amounts{CPU: 1000 * cores, Memory: 4 * cores << 30, Pods: 100}
	return Order{
		Name: name, Pool: "general", Class: "default",
		Type:     catalog.Type{Name: "any", Capacity: room, Allocatable: room, Labels: requirements.Labels{catalog.LabelArch: "amd64"}},
		Offering: catalog.Offering{Zone: "a", CapacityType: catalog.OnDemand, Price: cent * catalog.Price(cores), Available: true},
	}
}

func pod(name string, milli int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(milli, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(milli*(4<<30)/1000, resource.BinarySI),
		}}}}},
	}
}

// podsByNode returns the original names of the pods on each node, and of pending pods under "".
func podsByNode(f *Fleet) map[string][]string {
	out := map[string][]string{}
	for _, p := range f.pods {
		name := ""
		if p.node != nil {
			name = p.node.Name
		}
		out[name] = append(out[name], p.originalName)
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out
}

// TestEvicted: evicted pods are bound one after the other, each to the node with the most room among those that accept
// the pod.
func TestEvicted(t *testing.T) {
	t.Parallel()
	placed := func(nodesAndPods ...string) map[string][]string { // a node, its pod, a node, its pod, …
		out := map[string][]string{}
		for i := 0; i < len(nodesAndPods); i += 2 {
			out[nodesAndPods[i]] = append(out[nodesAndPods[i]], nodesAndPods[i+1])
		}
		return out
	}
	for name, c := range map[string]struct {
		pods   []*corev1.Pod
		change func(f *Fleet)
		want   map[string][]string
	}{
		"most room": {
			pods: []*corev1.Pod{pod("1", 1500), pod("2", 1000), pod("3", 1000)}, // b has 3 of 4 cores left, c has 2
			want: placed("b", "1", "b", "3", "b", "b0", "c", "2", "c", "c0"),
		},
		"cordoned node": {
			pods: []*corev1.Pod{pod("1", 1500)}, change: func(f *Fleet) { f.Cordon("b", true) }, want: placed("b", "b0", "c", "1", "c", "c0"),
		},
		"no room": {
			pods: []*corev1.Pod{pod("1", 2500), pod("2", 2500)}, want: placed("", "2", "b", "1", "b", "b0", "c", "c0"),
		},
		"node selector": {
			pods: []*corev1.Pod{pod("1", 500)}, change: func(f *Fleet) {
				f.Instance("c").Offering.Zone = "c"
				f.Instance("a").pods["1"].Object.Spec.NodeSelector = map[string]string{catalog.LabelZone: "c"}
			}, want: placed("b", "b0", "c", "1", "c", "c0"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := New(nil, nil)
			f.Place(node("b", 4), []*corev1.Pod{pod("b0", 1000)})
			f.Place(node("c", 4), []*corev1.Pod{pod("c0", 2000)})
			f.Place(node("a", 8), c.pods)
			if c.change != nil {
				c.change(f)
			}
			f.Remove("a", "unknown")
			if got := podsByNode(f); !maps.EqualFunc(got, c.want, slices.Equal) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if f.Moved() != len(c.pods) || f.PendingPods() != len(c.want[""]) {
				t.Errorf("%d pods moved, want %d; %d pending, want %d", f.Moved(), len(c.pods), f.PendingPods(), len(c.want[""]))
			}
		})
	}
}

// TestLargeFirst: if the small pods are evicted first, they fill both nodes evenly, and the large pod has no room. If
// the large pod is evicted first, all pods have room.
func TestLargeFirst(t *testing.T) {
	t.Parallel()
	for largeFirst, pending := range map[bool]int{false: 1, true: 0} {
		f := New(nil, nil)
		f.LargeFirst = largeFirst
		f.Place(node("b", 4), []*corev1.Pod{pod("b0", 1000)})
		f.Place(node("c", 4), []*corev1.Pod{pod("c0", 1000)})
		f.Place(node("a", 8), []*corev1.Pod{pod("1", 500), pod("2", 500), pod("3", 2800)})
		f.Remove("a")
		if f.PendingPods() != pending || f.Moved() != 3 {
			t.Errorf("LargeFirst %v: %d of %d evicted pods are pending, want %d of 3", largeFirst, f.PendingPods(), f.Moved(), pending)
		}
	}
}

// TestPaid: an instance is paid for from the time at which it exists until the grace period of its pods is over.
// Pending pods are bound to a node when it becomes ready.
func TestPaid(t *testing.T) {
	t.Parallel()
	f := New(nil, nil)
	f.Place(node("a", 4), []*corev1.Pod{pod("1", 1000)})
	f.Advance(Start.Add(time.Minute))
	f.Remove("a") // no other node exists yet
	f.Launch(node("b", 2))
	f.Advance(Start.Add(time.Minute + JoinTime - time.Second))
	if f.PendingPods() != 1 || f.Instance("b").Node() != nil {
		t.Errorf("before node b is ready, %d pods are pending, want 1; want no Node b yet", f.PendingPods())
	}
	f.Advance(Start.Add(time.Hour))
	if got := podsByNode(f); !slices.Equal(got["b"], []string{"1"}) || f.Instance("a") != nil {
		t.Errorf("after an hour, the pods by node are %v; want pod 1 on b, and no node a", got)
	}
	want := []Step{
		{From: 0, Price: 4 * cent, Settled: 4 * cent},
		{From: time.Minute, Price: 4 * cent, Leaving: 4 * cent, Moved: 1},
		{From: time.Minute + LaunchTime, Price: 6 * cent, Joining: 2 * cent, Leaving: 4 * cent, Settled: 2 * cent, Moved: 1},
		{From: time.Minute + DrainTime, Price: 2 * cent, Joining: 2 * cent, Settled: 2 * cent, Moved: 1},
		{From: time.Minute + JoinTime, Price: 2 * cent, Settled: 2 * cent, Moved: 1},
	}
	if !slices.Equal(f.Bill(), want) {
		t.Errorf("the bill is %v, want %v", f.Bill(), want)
	}
	if got, want := ConvergedAt(f.Bill()), time.Minute+DrainTime; got != want {
		t.Errorf("the price last changed at %s, want %s", got, want)
	}
	// Cents per hour times seconds: only a, until b is launched; then both, until a is gone; then only b.
	const centSeconds = 4*62 + 6*28 + 2*(3600-90)
	if got, want := fmt.Sprintf("%.6f", Spent(f.Bill(), time.Hour)), fmt.Sprintf("%.6f", 0.01*centSeconds/3600); got != want {
		t.Errorf("%s was paid, want %s", got, want)
	}
	joining, leaving := SpentInTransition(f.Bill(), time.Hour)
	if got, want := fmt.Sprintf("%.6f %.6f", joining, leaving), fmt.Sprintf("%.6f %.6f", 0.02*43/3600, 0.04*30/3600); got != want {
		t.Errorf("%s was paid for joining and leaving instances, want %s", got, want)
	}
	f.Cordon("b", true) // from now on, Step.Moved counts the pod of b as moved
	f.Launch(node("c", 1))
	f.Advance(Start.Add(2 * time.Hour))
	if got, want := f.Bill()[len(f.Bill())-2], (Step{From: time.Hour + LaunchTime, Price: 3 * cent, Joining: cent,
		Settled: cent, Moved: 2}); got != want {
		t.Errorf("while b is cordoned and c joins, the bill's step is %v, want %v", got, want)
	}
	f.Delete("1")
	if got := podsByNode(f); len(got) > 0 {
		t.Errorf("pods after the deletion: %v, want none", got)
	}
}
