package consolidation

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

const (
	cent = catalog.Dollar / 100
	gpu  = "nvidia.com/gpu"
)

func gpuType(name string, cores, gpus int64, price catalog.Price) catalog.Type {
	room := resources.Amounts{CPU: cores * 1000, Memory: cores * 4 << 30, Pods: 110}.With(gpu, gpus)
	return catalog.Type{
		Name: name, Capacity: room, Allocatable: room,
		Labels:    requirements.Labels{catalog.LabelInstanceType: name, catalog.LabelArch: "amd64"},
		Offerings: []catalog.Offering{{Zone: "us-east-1a", CapacityType: catalog.OnDemand, Price: price, Available: true}},
	}
}

func gpuMarket() catalog.Market {
	return catalog.Market{"default": {Region: "us-east-1", Types: []catalog.Type{
		gpuType("gpu-16", 16, 1, 120*cent), gpuType("gpu-4", 4, 1, 52*cent), gpuType("gpu-8", 8, 1, 75*cent),
		gpuType("gpu-96", 96, 8, 782*cent), gpuType("plain-8", 8, 0, 40*cent),
	}}}
}

func gpuPods(name string, n int, cores, gpus int64) []cluster.Pod {
	out := make([]cluster.Pod, n)
	for i := range out {
		out[i] = cluster.Pod{
			Namespace: "default", Name: fmt.Sprint(name, "-", i),
			Requests: resources.Amounts{CPU: cores * 1000, Memory: cores << 30, Pods: 1}.With(gpu, gpus),
		}
	}
	return out
}

func pendingSnapshot(all []cluster.Pod) cluster.Snapshot {
	return cluster.Snapshot{Pools: []cluster.Pool{{Name: "general", NodeClass: "default"}}, Pods: all}
}

var allTypes = map[string]bool{"gpu-16": true, "gpu-4": true, "gpu-8": true, "gpu-96": true, "plain-8": true}

// TestEstimate: pods share nodes of the shared types if that saves money. The result is the same for one group of all
// pods and for two groups.
func TestEstimate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pods   []cluster.Pod
		shared map[string]bool
		want   catalog.Price
	}{
		"no pod":                       {want: 0},
		"one pod":                      {pods: gpuPods("a", 1, 6, 1), shared: allTypes, want: 75 * cent},
		"eight pods fill a large node": {pods: gpuPods("a", 8, 12, 1), shared: allTypes, want: 782 * cent},
		"no shared type":               {pods: gpuPods("a", 8, 12, 1), want: 8 * 120 * cent},
		"small pods leave room for large ones": {pods: append(gpuPods("a", 8, 12, 1), gpuPods("b", 3, 6, 1)...), shared: allTypes,
			want: (782 + 3*75) * cent},
		"too few for a large node":     {pods: gpuPods("a", 5, 12, 1), shared: allTypes, want: 5 * 120 * cent},
		"two share a node without GPU": {pods: gpuPods("a", 2, 4, 0), shared: allTypes, want: 40 * cent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEstimator(pendingSnapshot(c.pods), gpuMarket(), c.shared)
			half := len(c.pods) / 2
			halves, whole := []estimateGroup{e.group(c.pods[:half]), e.group(c.pods[half:])}, []estimateGroup{e.group(c.pods)}
			if got, ok := e.estimate(halves); !ok || got != c.want {
				t.Errorf("estimate %s, ok: %v; want %s", got, ok, c.want)
			}
			if !samePods(halves, whole) || len(c.pods) > 1 && samePods(halves[:1], whole) {
				t.Error("samePods: want true for both halves and the whole, false for one half and the whole")
			}
			sum := catalog.Price(0)
			for _, m := range e.plannedNodes(whole) {
				sum += m.Offering.Price
			}
			if sum != c.want {
				t.Errorf("the planned nodes cost %s, want %s", sum, c.want)
			}
		})
	}
}

// TestEstimateWithoutOffering: a pod has no estimate if it fits no instance type, or if no instance type has the labels
// that it requires. Other pods of the snapshot have estimates.
func TestEstimateWithoutOffering(t *testing.T) {
	t.Parallel()
	all := append(gpuPods("large", 1, 200, 0), gpuPods("small", 1, 6, 0)...)
	arm := gpuPods("arm", 1, 1, 0)
	arm[0].Required = []requirements.Requirements{{catalog.LabelArch: requirements.OneOf("arm64")}}
	all = append(all, arm...)
	e := newEstimator(pendingSnapshot(all), gpuMarket(), allTypes)
	for i, want := range []bool{false, true, false} {
		if price, ok := e.estimate([]estimateGroup{e.group(all[i : i+1])}); ok != want {
			t.Errorf("%s: estimate %s, ok: %v, want %v", all[i].Name, price, ok, want)
		}
	}
	if price, ok := e.estimate([]estimateGroup{e.group(gpuPods("unknown", 1, 1, 0))}); ok {
		t.Errorf("a pod that is not in the snapshot has the estimate %s, want none", price)
	}
}

// TestEstimateBounds: an estimate is never below the lower bound, and never above the sum of the stand-alone prices of
// the pods. On average, estimates are at most a tenth above the prices of plans, which may use all instance types.
func TestEstimateBounds(t *testing.T) {
	t.Parallel()
	planned, estimated := catalog.Price(0), catalog.Price(0) // sums of all prices
	rapid.Check(t, func(t *rapid.T) {
		var all []cluster.Pod
		alone := catalog.Price(0)
		for i := range rapid.IntRange(1, 5).Draw(t, "kinds") {
			pods := gpuPods(fmt.Sprint("p", i), rapid.IntRange(1, 5).Draw(t, "pods"), rapid.Int64Range(1, 16).Draw(t, "cores"),
				rapid.Int64Range(0, 1).Draw(t, "gpus"))
			onePod := packing.Solve(pendingSnapshot(pods[:1]), gpuMarket(), packing.DefaultEffort)
			if len(onePod.Refusals) > 0 {
				continue // more cores than a type without GPU has
			}
			all, alone = append(all, pods...), alone+onePod.Price*catalog.Price(len(pods))
		}
		slices.SortFunc(all, func(a, b cluster.Pod) int { return len(a.ID()) - len(b.ID()) })
		e := newEstimator(pendingSnapshot(all), gpuMarket(), allTypes)
		got, ok := e.estimate([]estimateGroup{e.group(all)})
		plan := packing.Solve(pendingSnapshot(all), gpuMarket(), packing.DefaultEffort)
		if !ok || got > alone || got < plan.LowerBound {
			t.Fatalf("estimate %s, ok: %v; want the lower bound %s or more, and at most the stand-alone prices %s", got, ok, plan.LowerBound, alone)
		}
		planned, estimated = planned+plan.Price, estimated+got
	})
	if estimated > planned*11/10 {
		t.Errorf("the estimates sum to %s, want at most a tenth above the plans, which sum to %s", estimated, planned)
	}
}
