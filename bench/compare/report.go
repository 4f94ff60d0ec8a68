package compare

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/joiner-sh/joiner/bench/workload"
)

// Report returns the whole report: the targets, a table for each group, and the plots. plot is the path of the picture
// with the plots, relative to the report; empty omits the picture.
func Report(rows []Row, plot string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Benchmarks

This page compares Joiner's solver with the scheduler of sigs.k8s.io/karpenter %s (*upstream*). Both plan the same pods,
with the same nodes, NodePools, instance types and prices, in one process, one after the other. Written by %s on %d cores with %s.

* **seconds** is the time of the plan alone: the median of several warm runs. Upstream runs with one worker, which is the
  default of its controller, and with five; the better result counts. Upstream's controller ends a plan after 60 s; here the limit
  is five minutes.
* **ratio** is the time that upstream needs per pod, divided by Joiner's.
* **allocated** and **objects** count the allocations of the plan. **peak** is the memory of the process during the plan,
  its input included.
* **bound**: no plan can cost less. **gap**: how far the price of the plan is above the bound. Upstream's plans differ from run
  to run; its price is that of its cheapest plan, each planned node at its cheapest offering.
* **plan** is the verdict of a checker (internal/scheduling/packing/verify) that shares no code with the solver. A plan holds if
  one order exists in which its pods can be bound without breaking a rule between pods, whichever of its offerings each node is
  launched with. If rules connect very many pods, the checker may not find such an order. So it may reject a correct plan, but it
  never accepts a wrong one.

## Design goals

`, version(), "`make bench`", runtime.GOMAXPROCS(0), runtime.Version())
	b.WriteString(TargetTable(rows))
	for _, t := range tables {
		var group []Row
		for _, r := range rows {
			if r.Workload.Group == t.group {
				group = append(group, r)
			}
		}
		if len(group) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", t.title, t.about)
		if t.group == workload.Sizes && plot != "" {
			fmt.Fprintf(&b, "![time and memory by number of pods](%s)\n\n", plot)
		}
		if t.group == workload.Sizes {
			b.WriteString(growthNotes(group))
		}
		b.WriteString(Markdown(group))
	}
	b.WriteString("\n## How it was run\n\nThe seconds do not include the preparation of a plan, which happens once: Joiner's snapshot of the Kubernetes objects, and upstream's\n" +
		"copy of its nodes, its counts of pods by topology and its scheduler. On a host with other load, processor time is the better\n" +
		"measure.\n\n")
	b.WriteString(Detail(rows))
	return b.String()
}

// version returns the version of upstream's module in this program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(version not known)"
	}
	for _, m := range info.Deps {
		if m.Path == "sigs.k8s.io/karpenter" {
			return m.Version
		}
	}
	return "(version not known)"
}
