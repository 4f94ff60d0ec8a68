package workload

import (
	"fmt"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// All returns all workloads, in the order of the report. traces is the folder with the traces, which are read when a
// workload is built.
func All(traces string) []Workload {
	out := speed()
	for _, n := range []int{1000, 5000, 10_000} {
		out = append(out, Workload{
			Name: fmt.Sprintf("own-%d", n), About: fmt.Sprintf("upstream's own mix, %s pods", thousands(n)), Group: Karpenter, Kind: Constrained,
			Build: func() (Case, error) { return karpenterSetup(n).build() },
		})
	}
	out = append(out, Workload{
		Name: "own-preferences", About: "upstream's 4,000 pods that each prefer a host and a zone without the others; there are only three zones", Group: Karpenter, Kind: Preferring,
		Build: func() (Case, error) {
			s := karpenterSetup(0)
			s.pods = karpenterPreferences(4000)
			return s.build()
		},
	})
	out = append(out, prices()...)
	for _, t := range []struct {
		name, about string
		gpus        bool
	}{{"openb-cpu", "1,088 tasks of Alibaba's trace, without GPUs", false},
		{"openb-all", "all 8,152 tasks of the trace, one to eight GPUs for most", true}} {
		out = append(out, Workload{
			Name: t.name, About: t.about, Group: Traces,
			Build: func() (Case, error) {
				pods, err := tracePods(traces, t.gpus)
				if err != nil {
					return Case{}, err
				}
				s := realSetup(nil)
				s.pods = pods
				return s.build()
			},
		})
	}
	return append(out, sizes()...)
}

func karpenterSetup(pods int) setup {
	return setup{
		market: func() (catalog.Market, error) { return karpenterMarket(), nil },
		pools:  []*karpv1.NodePool{pool(poolName)},
		pods:   karpenterMix(pods),
	}
}

// podCounts are the numbers of pods of the rows that sizes returns.
var podCounts = []int{1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000}

// maxUpstreamPods is the largest number of plain pods that upstream plans within five minutes. Of the rows that sizes
// returns, upstream runs only those with plain pods in 500 deployments, up to this number.
const maxUpstreamPods = 50_000

// sizes returns the rows with growing numbers of pods. There are three kinds of rows:
//   - plain pods in 500 deployments
//   - plain pods in deployments of 20 pods, so that the number of classes grows, too
//   - pods with mixed constraints in 500 deployments
func sizes() []Workload {
	var out []Workload
	for _, n := range podCounts {
		out = append(out, Workload{
			Name: fmt.Sprintf("fixed-%d", n), About: fmt.Sprintf("%s pods in 500 deployments", thousands(n)), Group: Sizes,
			Build:    func() (Case, error) { return roundSetup(roundTypes, broadDeployments(n, 500, 1)).build() },
			OursOnly: n > maxUpstreamPods,
		})
	}
	for _, n := range podCounts {
		out = append(out, Workload{
			Name: fmt.Sprintf("growing-%d", n), About: fmt.Sprintf("%s pods in %s deployments", thousands(n), thousands(n/20)), Group: Sizes,
			Build:    func() (Case, error) { return roundSetup(roundTypes, broadDeployments(n, n/20, 1)).build() },
			OursOnly: true,
		})
	}
	for _, n := range podCounts {
		out = append(out, Workload{
			Name: fmt.Sprintf("constrained-%d", n), About: fmt.Sprintf("%s pods in 500 deployments, mixed constraints", thousands(n)),
			Group: Sizes, Kind: Constrained,
			Build: func() (Case, error) {
				return roundSetup(roundTypes, changeAll(broadDeployments(n, 500, 1), mixedConstraints)).build()
			},
			OursOnly: true,
		})
	}
	return out
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
