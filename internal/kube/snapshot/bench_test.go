package snapshot

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

// BenchmarkSnapshot should take a few milliseconds for the first of the clusters, and under 100 ms for the second.
func BenchmarkSnapshot(b *testing.B) {
	for _, size := range []struct{ pending, nodes, perNode int }{{500, 100, 20}, {5_000, 1_000, 0}, {5_000, 1_000, 30}} {
		o := uniformCluster(size.pending, size.nodes, size.perNode)
		b.Run(fmt.Sprintf("%d-pending-%d-nodes-%d-bound", size.pending, size.nodes, size.nodes*size.perNode), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := o.Snapshot(View{Now: kubetest.Noon, Live: true}); len(got.Pods) != size.pending {
					b.Fatalf("%d pods need a node, want %d", len(got.Pods), size.pending)
				}
			}
		})
	}
}
