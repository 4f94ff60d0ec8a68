package snapshot

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Each of these mixes has some workloads of workloadPod: plainPods those without constraints on other pods, spreadPods
// those that are spread over zones and hosts, and mixedPods all.
var (
	plainPods  = podMix{"plain", []int{0, 4, 5, 6, 7, 8, 9}, false}
	spreadPods = podMix{"spread", []int{1, 2}, true}
	mixedPods  = podMix{"mixed", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, false}
)

// podMix is a selection of workloads. BenchmarkPlan adds 100 pods of it to the cluster.
type podMix struct {
	name         string
	digits       []int // the last digits of the workloads' numbers
	isSpreadHard bool  // the spread over hosts is required, not only preferred
}

// BenchmarkPlan, with 5,000 nodes and 150,000 pods, should take under 100 ms in one thread for a snapshot and a plan
// for 100 new pods. Every node has room for some of the pods (roomy), one in 20 has (nearly-full), or no node has
// (full), so that all pods need new instances.
func BenchmarkPlan(b *testing.B) {
	o := largeCluster(largeClusterNodes)
	market := inZonesOf(o, generalMarket(b))
	w := newWorld(View{})
	w.send(o)
	for _, room := range []struct {
		name  string
		every int // nodes whose index is a multiple of this number have room; 0: no node
	}{{"full", 0}, {"nearly-full", 20}, {"roomy", 1}} {
		w.widen(o, room.every)
		w.state.snapshot(kubetest.Noon, market, nil)
		for _, mix := range []podMix{plainPods, spreadPods, mixedPods} {
			for _, workloads := range []int{10, 100} {
				b.Run(fmt.Sprint(room.name, "/", mix.name, "-", workloads), func(b *testing.B) {
					benchNewPods(b, w, market, mix.pods(workloads), room.every == 0)
				})
			}
		}
	}
}

// inZonesOf returns the market restricted to the nodes' zones.
func inZonesOf(o Objects, market catalog.Market) catalog.Market {
	zones := map[string]bool{}
	for _, n := range o.Nodes {
		zones[n.Labels[catalog.LabelZone]] = true
	}
	out := catalog.Market{}
	for class, general := range market {
		general.Types = slices.Clone(general.Types)
		for i, t := range general.Types {
			offerings := slices.DeleteFunc(slices.Clone(t.Offerings), func(o catalog.Offering) bool { return !zones[o.Zone] })
			general.Types[i] = t.WithOfferings(offerings)
		}
		out[class] = general
	}
	return out
}

// widen gives room for three more pods to each node whose index is a multiple of every, or to no node if every is 0.
func (w *stateTester) widen(o Objects, every int) {
	put := w.feeds[reflect.TypeFor[*corev1.Node]()].put
	for i, n := range o.Nodes {
		if every == 0 || i%every > 0 {
			continue
		}
		wide := n.DeepCopy()
		wide.Status.Allocatable["cpu"] = resource.MustParse("18") // 15.89 before
		wide.Status.Capacity["cpu"] = resource.MustParse("18")
		put(wide)
	}
}

func (m podMix) pods(workloads int) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range 100 {
		n := i % workloads
		// the nth workload whose number ends with one of the digits
		pod := workloadPod(n/len(m.digits)*10+m.digits[n%len(m.digits)], fmt.Sprint("new-", i))
		if m.isSpreadHard {
			for j := range pod.Spec.TopologySpreadConstraints {
				pod.Spec.TopologySpreadConstraints[j].WhenUnsatisfiable = corev1.DoNotSchedule
			}
		}
		pod.Status.Conditions = kubetest.PendingPod("").Status.Conditions
		out = append(out, pod)
	}
	return out
}

// benchNewPods adds the pods, plans for them, and removes them. The plan must launch instances if mustLaunch is true,
// and none otherwise.
func benchNewPods(b *testing.B, w *stateTester, market catalog.Market, pods []*corev1.Pod, mustLaunch bool) {
	feed := w.feeds[reflect.TypeFor[*corev1.Pod]()]
	b.ReportAllocs()
	turn := 0
	var plan packing.Plan
	for b.Loop() {
		turn++
		for _, pod := range pods {
			pod.ResourceVersion, pod.CreationTimestamp = fmt.Sprint("v", turn), metav1.Time{Time: kubetest.Noon}
			feed.put(pod)
		}
		snapshot := w.state.snapshot(kubetest.Noon, market, nil)
		plan = packing.Solve(snapshot, market, packing.DefaultEffort)
		for _, pod := range pods {
			feed.drop(pod)
		}
		if len(snapshot.Pods) != len(pods) || len(plan.Refusals) > 0 || mustLaunch != (len(plan.PlannedNodes) > 0) {
			b.Fatalf("%d pods, want 100; %d planned nodes, want some: %t; refused %v, want none",
				len(snapshot.Pods), len(plan.PlannedNodes), mustLaunch, plan.Refusals)
		}
	}
	b.ReportMetric(float64(plan.Steps), "steps")
}
