package side

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/joiner-sh/joiner/bench/workload"
)

// Report writes everything: the aims, a table for each group, the plot.
// plot is where the picture lies as seen from the report.
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
* **plan** is the verdict of our checker (packing/verify), which shares no code with the solver. It wants the rules between
  pods kept whichever of its offerings each machine becomes.

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
		b.WriteString(Markdown(group))
	}
	b.WriteString("\n## How it was run\n\nWhat comes before a plan is not in its seconds: our snapshot of the Kubernetes objects; upstream's copy of its\n" +
		"nodes, its counts of pods by topology and its scheduler. Both are made once for a plan. On a machine that does other work\n" +
		"besides, processor time says more than seconds do.\n\n")
	b.WriteString(Detail(rows))
	return b.String()
}

// version is that of upstream, as this program was built with it.
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

// Growth draws time and memory of the rows whose sizes grow.
func Growth(rows []Row) string {
	time := Plot{Title: "time of a plan", Below: "pods", Left: "seconds"}
	memory := Plot{Title: "memory allocated for a plan", Below: "pods", Left: "MiB"}
	for _, s := range []struct {
		prefix, name, color string
		theirs              bool
	}{
		{"fixed-", "upstream, 500 deployments", "#c0392b", true},
		{"fixed-", "joiner, 500 deployments", "#1f618d", false},
		{"growing-", "joiner, deployments of 20 pods", "#229954", false},
		{"constrained-", "joiner, 500 deployments with mixed constraints", "#7d3c98", false},
	} {
		seconds, mib := Series{Name: s.name, Color: s.color}, Series{Name: s.name, Color: s.color}
		for i := range rows {
			r := &rows[i]
			o := &r.Ours
			if s.theirs {
				o = r.Theirs
			}
			if !strings.HasPrefix(r.Workload.Name, s.prefix) || r.Skipped != "" || o == nil || o.Late || o.Refused > r.Hopeless {
				continue
			}
			seconds.X, seconds.Y = append(seconds.X, float64(o.Pods)), append(seconds.Y, o.Seconds)
			mib.X, mib.Y = append(mib.X, float64(o.Pods)), append(mib.Y, float64(o.Allocated)/(1<<20))
		}
		if len(seconds.X) > 0 {
			time.Series, memory.Series = append(time.Series, seconds), append(memory.Series, mib)
		}
	}
	return SVG(time, memory)
}
