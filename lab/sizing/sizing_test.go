package sizing

import (
	"testing"
	"time"
)

// TestMarkdown checks the line of a size: order, units and rounding.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	got := Markdown([]Result{{
		Size: Size{Nodes: 1000, MemoryLimitMiB: 1024}, StartTime: 1500 * time.Millisecond, StartCPU: 3 * time.Second,
		IdleCPU: 0.0123, IdleMiB: 200, NewNodes: 20, NewPods: 200,
		BurstTime: 40 * time.Second, BurstCPU: 9 * time.Second, RemovalTime: 2900 * time.Millisecond, PeakMiB: 300,
	}})
	want := "| 1,000 | 30,000 | 1024 MiB | 200 MiB | 12m | 1.5 s | 3.0 s | 200 on 20 | 40 s | 9.0 s | 300 MiB | 2.9 s |\n"
	if len(got) < len(want) || got[len(got)-len(want):] != want {
		t.Errorf("the table is\n%s, want it to end with\n%s", got, want)
	}
}

// TestBurstSize checks that a burst needs 2 % of the number of nodes, at least 5 and at most 50.
func TestBurstSize(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[int]int{100: 5, 500: 10, 1000: 20, 5000: 50} {
		if newNodes, pods := burstSize(nodes); newNodes != want || pods != want*burstPerNode {
			t.Errorf("for %d nodes, the burst has %d pods on %d new nodes; want %d on %d", nodes, pods, newNodes, want*burstPerNode, want)
		}
	}
}
