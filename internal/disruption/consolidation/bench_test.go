package consolidation_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// BenchmarkFind measures one pass over fleets after half of the pods have been removed. One pass over the largest fleet
// must take at most five seconds and 500 MB.
func BenchmarkFind(b *testing.B) {
	for _, pods := range []int{6_000, 30_000, 120_000} {
		b.Run(fmt.Sprint(pods/2, "-pods"), func(b *testing.B) {
			d := dice(1)
			in := fleet(b, []cluster.Pool{{Name: "general", NodeClass: "default"}}, mixedPods(pods, pods/200, &d), realMarket(b, 48, 64))
			scaleDown(&in, 50, &d)
			measure(b, in)
		})
	}
}

// BenchmarkFindNothing measures one pass over converged fleets, in which all strategies fail. The limits of
// BenchmarkFind apply to the largest fleet.
func BenchmarkFindNothing(b *testing.B) {
	for _, pods := range []int{6_000, 30_000, 120_000} {
		b.Run(fmt.Sprint(pods/2, "-pods"), func(b *testing.B) {
			d := dice(1)
			in := fleet(b, []cluster.Pool{{Name: "general", NodeClass: "default"}}, mixedPods(pods/2, pods/200, &d), realMarket(b, 24, 32))
			for round := 0; round < maxRounds; round++ {
				out := consolidation.Find(in)
				if len(out.Moves) == 0 {
					break
				}
				in = afterMoves(b, in, out.Moves, round)
			}
			measure(b, in)
		})
	}
}

// BenchmarkFindConstrained is like BenchmarkFind, but half of the pods have a topology spread or anti-affinity.
func BenchmarkFindConstrained(b *testing.B) {
	for _, pods := range []int{6_000, 30_000} {
		b.Run(fmt.Sprint(pods/2, "-pods"), func(b *testing.B) {
			d := dice(1)
			mixed := mixedPods(pods, pods/200, &d)
			constrainHalf(mixed)
			in := fleet(b, []cluster.Pool{{Name: "general", NodeClass: "default"}}, mixed, realMarket(b, 48, 64))
			scaleDown(&in, 50, &d)
			measure(b, in)
		})
	}
}

func measure(b *testing.B, in consolidation.Input) {
	b.Helper()
	var out consolidation.Result
	b.ReportAllocs()
	for b.Loop() {
		out = consolidation.Find(in)
	}
	movedPods, removedNodes := 0, 0
	for _, m := range out.Moves {
		movedPods, removedNodes = movedPods+m.Pods, removedNodes+len(m.Nodes)
	}
	b.ReportMetric(float64(len(in.Snapshot.Nodes)), "nodes")
	b.ReportMetric(100*float64(out.Saving)/float64(out.Price), "%saved")
	b.ReportMetric(100*float64(out.Price-out.Target)/float64(out.Price), "%possible")
	b.ReportMetric(float64(movedPods), "moved")
	b.ReportMetric(float64(removedNodes), "removed")
	b.ReportMetric(float64(len(out.Moves)), "moves")
	b.ReportMetric(float64(out.Plans), "plans")
}
