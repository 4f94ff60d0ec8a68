package compare

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/joiner-sh/joiner/bench/workload"
)

// Report returns the whole report: the targets, a table for each group, the plot. plot is the path of the picture, relative to the report.
func Report(rows []Row, plot string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Benchmarks

Joiner's solver beside the scheduler of sigs.k8s.io/karpenter %s: the same pods, nodes, pools, instance types and
prices, in one process, one after the other. Written by %s on %d cores with %s.

* **seconds** are those of the plan alone: the median of several runs, warm. For upstream the better of one worker,
  which is what its controller has by default, and five. Its controller ends a plan after 60 s; here it may take five minutes.
* **ratio** is how many times longer upstream takes for a pod.
* **allocated** and **objects** count what was allocated while planning, **peak** is all that the process had from the
  system then, what it planned for included.
* **bound**: no plan can cost less. **gap**: how far above it the plan is. Upstream's plans differ from run to run; its
  price is that of its cheapest plan, each machine at the cheapest offering it could become.
* **plan** is the verdict of our checker (internal/scheduling/packing/verify), which shares no code with the solver. It wants the rules between
  pods kept whichever of its offerings each machine becomes, in some order of binding. Where rules tie very many pods
  together it may miss that order, so a plan may be called wrong that is right, but never the other way round.

## What the design asks

`, version(), "`make bench`", runtime.GOMAXPROCS(0), runtime.Version())
	b.WriteString(Aims(rows))
	for _, t := range titles {
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
			b.WriteString(growth(group))
		}
		b.WriteString(Markdown(group))
	}
	b.WriteString("\n## How it was run\n\nWhat comes before a plan is not in its seconds: our snapshot of the Kubernetes objects; upstream's copy of its\n" +
		"nodes, its counts of pods by topology and its scheduler. Both are made once for a plan. On a machine that does other work\n" +
		"besides, processor time says more than seconds do.\n\n")
	b.WriteString(Detail(rows))
	return b.String()
}

// version returns the version of upstream that this program was built with.
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
