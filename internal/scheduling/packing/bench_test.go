package packing_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// dice is a small random number generator that returns the same numbers in every run.
type dice uint64

func (d *dice) roll(n int) int {
	*d = *d*6364136223846793005 + 1442695040888963407
	return int(uint64(*d) >> 33 % uint64(n))
}

// families are some of EC2's instance families, with the on-demand price of size large in
// us-east-1, as published, in ten-thousandths of a dollar.
var families = []struct {
	name, arch string
	gib, price int64 // memory in GiB and price of size large, which has 2 vCPUs
}{
	{"c5", "amd64", 4, 850}, {"m5", "amd64", 8, 960}, {"r5", "amd64", 16, 1260},
	{"c5a", "amd64", 4, 770}, {"m5a", "amd64", 8, 860}, {"r5a", "amd64", 16, 1130},
	{"c6i", "amd64", 4, 850}, {"m6i", "amd64", 8, 960}, {"r6i", "amd64", 16, 1260},
	{"c6a", "amd64", 4, 765}, {"m6a", "amd64", 8, 864}, {"r6a", "amd64", 16, 1134},
	{"c7i", "amd64", 4, 893}, {"m7i", "amd64", 8, 1008}, {"r7i", "amd64", 16, 1323},
	{"c7a", "amd64", 4, 1026}, {"m7a", "amd64", 8, 1159}, {"r7a", "amd64", 16, 1521},
	{"c6g", "arm64", 4, 680}, {"m6g", "arm64", 8, 770}, {"r6g", "arm64", 16, 1008},
	{"c7g", "arm64", 4, 725}, {"m7g", "arm64", 8, 816}, {"r7g", "arm64", 16, 1071},
	{"c5n", "amd64", 5, 1080}, {"m5n", "amd64", 8, 1190}, {"r5n", "amd64", 16, 1490},
	{"c5d", "amd64", 4, 960}, {"m5d", "amd64", 8, 1130}, {"r5d", "amd64", 16, 1440},
	{"x2gd", "arm64", 32, 1670}, {"t3", "amd64", 8, 832}, {"t3a", "amd64", 8, 752},
}

var sizes = []struct {
	name string
	n    int64 // size as a multiple of large
	pods int64 // maximum number of pods
}{
	{"large", 1, 29}, {"xlarge", 2, 58}, {"2xlarge", 4, 58}, {"4xlarge", 8, 234}, {"8xlarge", 16, 234},
	{"12xlarge", 24, 234}, {"16xlarge", 32, 737}, {"24xlarge", 48, 737},
}

// bigMarket returns about as many instance types as a region has: 800, in three generations of each family. The second
// and the third cost 3 to 7 % more than the first. Each type has an offering in three zones for each capacity type.
func bigMarket(capacityTypes ...string) catalog.Market {
	var types []catalog.Type
	for _, generation := range []string{"", "x", "y"} {
		for i, f := range families {
			for _, s := range sizes {
				types = append(types, bigType(f.name+generation, f.arch, s.name, 2*s.n, f.gib*s.n, s.pods,
					catalog.Price(f.price*s.n*int64(100+len(generation)*(3+i%5)))*1000, // in billionths of a dollar
					capacityTypes))
			}
		}
	}
	return catalog.Market{"default": {Region: "us-east-1", Types: types}}
}

func bigType(family, arch, size string, cpus, gib, pods int64, price catalog.Price, capacityTypes []string) catalog.Type {
	name := family + "." + size
	// The kernel and the hypervisor use 7.5 % of the memory; reserved is about what the EKS AMI reserves.
	full := resources.Amounts{CPU: cpus * 1000, Memory: gib << 30 * 925 / 1000, EphemeralStorage: 20 << 30, Pods: pods}
	reserved := resources.Amounts{CPU: 60 + cpus*3, Memory: (355 + 11*pods) << 20, EphemeralStorage: 3 << 30}
	t := catalog.Type{
		Name: name, Capacity: full, Allocatable: full.Sub(reserved),
		Labels: requirements.Labels{
			catalog.LabelInstanceType: name, catalog.LabelArch: arch, catalog.LabelOS: "linux",
			catalog.LabelFamily: family, catalog.LabelSize: size, catalog.LabelCPU: fmt.Sprint(cpus),
		},
	}
	for _, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c"} {
		for _, capacityType := range capacityTypes {
			p := price
			if capacityType == catalog.Spot {
				p = price * 35 / 100
			}
			t.Offerings = append(t.Offerings, catalog.Offering{Zone: zone, CapacityType: capacityType, Price: p, Available: true})
		}
	}
	return t.WithOfferings(t.Offerings)
}

var anyPool = []cluster.Pool{{Name: "general", NodeClass: "default"}}

// mixedPods returns pods of the given number of deployments, each with its own size.
func mixedPods(pods, deployments int, seed uint64) []cluster.Pod {
	d := dice(seed)
	out := make([]cluster.Pod, 0, pods)
	for n := range deployments {
		ask := resources.Amounts{
			CPU: int64(50 * (1 + d.roll(60))), Memory: int64(64*(1+d.roll(100))) << 20, Pods: 1,
		}
		if d.roll(3) == 0 { // about a third of the deployments request little
			ask.CPU, ask.Memory = ask.CPU/10+10, ask.Memory/8
		}
		count := pods / deployments
		if n < pods%deployments {
			count++
		}
		for i := range count {
			out = append(out, cluster.Pod{
				Namespace: "default", Name: fmt.Sprintf("app-%04d-%05d", n, i), Requests: ask, Owner: fmt.Sprint("ReplicaSet/app-", n),
			})
		}
	}
	return out
}

// BenchmarkSolve should take at most 50 ms for 500 mixed pods, and 1 s for 10,000 pods in 500 deployments, on one
// core.
func BenchmarkSolve(b *testing.B) {
	b.Run("made-up", func(b *testing.B) { benchSolve(b, bigMarket(catalog.OnDemand, catalog.Spot)) })
	b.Run("us-east-1", func(b *testing.B) { benchSolve(b, realMarket(b)) })
}

func benchSolve(b *testing.B, market catalog.Market) {
	for _, c := range []struct{ pods, deployments int }{
		{100, 20}, {500, 100}, {500, 500}, {1000, 1000}, {5000, 250}, {10_000, 500}, {50_000, 1}, {50_000, 2500},
	} {
		b.Run(fmt.Sprintf("%d-pods-%d-deployments", c.pods, c.deployments), func(b *testing.B) {
			s := cluster.Snapshot{Pools: anyPool, Pods: mixedPods(c.pods, c.deployments, 1)}
			var plan packing.Plan
			b.ReportAllocs()
			for b.Loop() {
				plan = packing.Solve(s, market, packing.DefaultEffort)
			}
			if len(plan.Refusals) > 0 {
				b.Fatalf("%d refusals, want none: %+v", len(plan.Refusals), plan.Refusals[0])
			}
			b.ReportMetric(100*(float64(plan.Price)/float64(plan.LowerBound)-1), "%gap")
			b.ReportMetric(float64(len(plan.PlannedNodes)), "nodes")
			b.ReportMetric(float64(plan.Steps), "steps")
		})
	}
}
