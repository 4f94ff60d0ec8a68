package estimate_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/disruption/estimate"
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

// machine is an instance type with so many cores, and GPUs.
func machine(name string, cores, gpus int64, price catalog.Price) catalog.Type {
	room := resources.Amounts{CPU: cores * 1000, Memory: cores * 4 << 30, Pods: 110}.With(gpu, gpus)
	return catalog.Type{
		Name: name, Capacity: room, Allocatable: room,
		Labels:    requirements.Labels{catalog.LabelInstanceType: name, catalog.LabelArch: "amd64"},
		Offerings: []catalog.Offering{{Zone: "us-east-1a", CapacityType: catalog.OnDemand, Price: price, Available: true}},
	}
}

// market is machines as of one family with GPUs, and one without.
func market() catalog.Market {
	return catalog.Market{"default": {Region: "us-east-1", Types: []catalog.Type{
		machine("gpu-16", 16, 1, 120*cent), machine("gpu-4", 4, 1, 52*cent), machine("gpu-8", 8, 1, 75*cent), machine("gpu-96", 96, 8, 782*cent), machine("plain-8", 8, 0, 40*cent),
	}}}
}

// pods are so many with so many cores and GPUs.
func pods(name string, n int, cores, gpus int64) []cluster.Pod {
	out := make([]cluster.Pod, n)
	for i := range out {
		out[i] = cluster.Pod{
			Namespace: "default", Name: fmt.Sprint(name, "-", i),
			Requests: resources.Amounts{CPU: cores * 1000, Memory: cores << 30, Pods: 1}.With(gpu, gpus),
		}
	}
	return out
}

func snapshot(all []cluster.Pod) cluster.Snapshot {
	return cluster.Snapshot{Pools: []cluster.Pool{{Name: "general", NodeClass: "default"}}, Pods: all}
}

var everything = map[string]bool{"gpu-16": true, "gpu-4": true, "gpu-8": true, "gpu-96": true, "plain-8": true}

func TestPrice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pods   []cluster.Pod
		shared map[string]bool
		want   catalog.Price
	}{
		"nobody":                             {want: 0},
		"one alone":                          {pods: pods("a", 1, 6, 1), shared: everything, want: 75 * cent},
		"eight that fill a large one":        {pods: pods("a", 8, 12, 1), shared: everything, want: 782 * cent},
		"nobody may share":                   {pods: pods("a", 8, 12, 1), want: 8 * 120 * cent},
		"small ones make way for large ones": {pods: append(pods("a", 8, 12, 1), pods("b", 3, 6, 1)...), shared: everything, want: (782 + 3*75) * cent},
		"too few for a large one":            {pods: pods("a", 5, 12, 1), shared: everything, want: 5 * 120 * cent},
		"two share what has no GPU":          {pods: pods("a", 2, 4, 0), shared: everything, want: 40 * cent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := estimate.New(snapshot(c.pods), market(), c.shared)
			half := len(c.pods) / 2
			halves, whole := []estimate.Group{e.Group(c.pods[:half]), e.Group(c.pods[half:])}, []estimate.Group{e.Group(c.pods)}
			if got, ok := e.Price(halves); !ok || got != c.want {
				t.Errorf("%s, %v, want %s", got, ok, c.want)
			}
			if !estimate.Alike(halves, whole) || len(c.pods) > 1 && estimate.Alike(halves[:1], whole) {
				t.Error("the two halves are not like all of them, or one of them is")
			}
			sum := catalog.Price(0)
			for _, m := range e.Machines(whole) {
				sum += m.Offering.Price
			}
			if sum != c.want {
				t.Errorf("the machines cost %s, want %s", sum, c.want)
			}
		})
	}
}

// TestNothingToBuy: a pod that no machine holds, or takes, has no price, and the next estimate has.
func TestNothingToBuy(t *testing.T) {
	t.Parallel()
	all := append(pods("large", 1, 200, 0), pods("small", 1, 6, 0)...)
	picky := pods("picky", 1, 1, 0)
	picky[0].Required = []requirements.Requirements{{catalog.LabelArch: requirements.OneOf("arm64")}}
	all = append(all, picky...)
	e := estimate.New(snapshot(all), market(), everything)
	for i, want := range []bool{false, true, false} {
		if price, ok := e.Price([]estimate.Group{e.Group(all[i : i+1])}); ok != want {
			t.Errorf("%s: %s, %v, want %v", all[i].Name, price, ok, want)
		}
	}
	if price, ok := e.Price([]estimate.Group{e.Group(pods("stranger", 1, 1, 0))}); ok {
		t.Errorf("a pod that is not of the snapshot costs %s", price)
	}
}

// TestCanBeHad: pods are never had for less than the bound, nor for more than each of them costs alone; and a plan, which may look at all types,
// is hardly ever much dearer.
func TestCanBeHad(t *testing.T) {
	t.Parallel()
	plans, estimates := catalog.Price(0), catalog.Price(0)
	rapid.Check(t, func(t *rapid.T) {
		var all []cluster.Pod
		alone := catalog.Price(0)
		for i := range rapid.IntRange(1, 5).Draw(t, "kinds") {
			some := pods(fmt.Sprint("p", i), rapid.IntRange(1, 5).Draw(t, "pods"), rapid.Int64Range(1, 16).Draw(t, "cores"), rapid.Int64Range(0, 1).Draw(t, "gpus"))
			one := packing.Solve(snapshot(some[:1]), market(), packing.Usual)
			if len(one.Refusals) > 0 {
				continue // more cores than there are without a GPU
			}
			all, alone = append(all, some...), alone+one.Price*catalog.Price(len(some))
		}
		slices.SortFunc(all, func(a, b cluster.Pod) int { return len(a.ID()) - len(b.ID()) })
		e := estimate.New(snapshot(all), market(), everything)
		got, ok := e.Price([]estimate.Group{e.Group(all)})
		plan := packing.Solve(snapshot(all), market(), packing.Usual)
		if !ok || got > alone || got < plan.LowerBound {
			t.Fatalf("%s, %v; no plan costs less than %s, and all of them alone %s", got, ok, plan.LowerBound, alone)
		}
		plans, estimates = plans+plan.Price, estimates+got
	})
	if estimates > plans*11/10 {
		t.Errorf("estimates come to %s, plans to %s: more than a tenth more", estimates, plans)
	}
}
