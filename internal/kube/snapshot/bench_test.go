package snapshot

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

// BenchmarkSnapshot should take a few milliseconds for the first cluster, and under 100 ms for the second. The third,
// with bound pods, has no limit.
func BenchmarkSnapshot(b *testing.B) {
	for _, size := range []struct{ pending, nodes, boundPerNode int }{{500, 100, 20}, {5_000, 1_000, 0}, {5_000, 1_000, 30}} {
		o := uniformCluster(size.pending, size.nodes, size.boundPerNode)
		b.Run(fmt.Sprintf("%d-pending-%d-nodes-%d-bound", size.pending, size.nodes, size.nodes*size.boundPerNode), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := o.Snapshot(View{Now: kubetest.Noon, Live: true}); len(got.Pods) != size.pending {
					b.Fatalf("%d pods need a node, want %d", len(got.Pods), size.pending)
				}
			}
		})
	}
}
