package sizing

import (
	"fmt"
	"strings"
)

// String returns the result in one line.
func (m Result) String() string {
	return fmt.Sprintf("%d nodes: ready after %.1f s with %.1f s of CPU time; idle %d MiB and %.0fm CPU; %d pods on %d new nodes in %.0f s with %.1f s of CPU time; an empty node is deleted after %.1f s; peak %d MiB",
		m.Nodes, m.StartTime.Seconds(), m.StartCPU.Seconds(), m.IdleMiB, 1000*m.IdleCPU, m.NewPods, m.NewNodes, m.BurstTime.Seconds(),
		m.BurstCPU.Seconds(), m.RemovalTime.Seconds(), m.PeakMiB)
}

// Markdown returns the table for docs/sizes.md.
func Markdown(all []Result) string {
	var b strings.Builder
	b.WriteString(`| nodes | pods | memory limit | idle: memory | idle: CPU | start: ready after | start: CPU | new pods on new nodes | until they ran | CPU meanwhile | most memory | an empty node is deleted after |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`)
	for _, m := range all {
		fmt.Fprintf(&b, "| %s | %s | %d MiB | %d MiB | %.0fm | %.1f s | %.1f s | %s on %d | %.0f s | %.1f s | %d MiB | %.1f s |\n",
			thousands(m.Nodes), thousands(m.Pods()), m.MemoryLimitMiB, m.IdleMiB, 1000*m.IdleCPU, m.StartTime.Seconds(), m.StartCPU.Seconds(),
			thousands(m.NewPods), m.NewNodes, m.BurstTime.Seconds(), m.BurstCPU.Seconds(), m.PeakMiB, m.RemovalTime.Seconds())
	}
	return b.String()
}

// thousands formats a number below a million with a comma.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
