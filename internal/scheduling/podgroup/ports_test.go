package podgroup_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// TestPortsClash checks that two lists conflict exactly if cluster.HostPort.Conflicts is true for a port of each list.
func TestPortsClash(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var ports podgroup.Ports
		var lists [][]cluster.HostPort
		var numbers []int
		for range rapid.IntRange(1, 100).Draw(t, "lists") {
			var list []cluster.HostPort
			for range rapid.IntRange(0, 3).Draw(t, "ports") {
				list = append(list, cluster.HostPort{
					IP:       rapid.SampledFrom([]string{"", "0.0.0.0", "::", "10.0.0.1", "10.0.0.2"}).Draw(t, "address"),
					Protocol: rapid.SampledFrom([]string{"TCP", "UDP"}).Draw(t, "protocol"),
					Port:     int32(rapid.IntRange(1, 20).Draw(t, "port")),
				})
			}
			lists, numbers = append(lists, list), append(numbers, ports.Number(list))
		}
		for i := range lists {
			for k := range lists {
				if got, want := ports.Conflict(numbers[i], numbers[k]), clash(lists[i], lists[k]); got != want ||
					ports.ConflictAny(numbers[i], numbers[k:k+1]) != want {
					t.Fatalf("%v and %v: Conflict is %t; want %t, also from ConflictAny", lists[i], lists[k], got, want)
				}
			}
		}
	})
}

func clash(a, b []cluster.HostPort) bool {
	for _, p := range a {
		for _, q := range b {
			if p.Conflicts(q) {
				return true
			}
		}
	}
	return false
}
