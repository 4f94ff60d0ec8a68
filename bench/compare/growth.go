package compare

import (
	"fmt"
	"strings"
)

// plotLines are the lines of the plots. A line shows the rows whose workload names start with prefix. It shows
// upstream's results if theirs is true, and Joiner's otherwise.
var plotLines = []struct {
	prefix, name, color string
	theirs              bool
}{
	{"fixed-", "upstream, 500 deployments", "#c0392b", true},
	{"fixed-", "joiner, 500 deployments", "#1f618d", false},
	{"growing-", "joiner, deployments of 20 pods", "#229954", false},
	{"constrained-", "joiner, 500 deployments with mixed constraints", "#7d3c98", false},
}

// Growth returns an SVG with two plots: time and memory by the number of pods.
func Growth(rows []Row) string {
	timePlot := Plot{Title: "time of a plan", Below: "pods", Left: "seconds"}
	memoryPlot := Plot{Title: "memory allocated for a plan", Below: "pods", Left: "MiB"}
	for _, line := range plotLines {
		outcomes := completeOutcomes(rows, line.prefix, line.theirs)
		if len(outcomes) == 0 {
			continue
		}
		time, memory := Series{Name: line.name, Color: line.color}, Series{Name: line.name, Color: line.color}
		for _, o := range outcomes {
			time.X, time.Y = append(time.X, float64(o.Pods)), append(time.Y, o.Seconds)
			memory.X, memory.Y = append(memory.X, float64(o.Pods)), append(memory.Y, float64(o.Allocated)/(1<<20))
		}
		timePlot.Series, memoryPlot.Series = append(timePlot.Series, time), append(memoryPlot.Series, memory)
	}
	return SVG(timePlot, memoryPlot)
}

// completeOutcomes returns the outcomes of one line, in the order of the rows. It leaves out plans that do
// not place all pods that can be placed.
func completeOutcomes(rows []Row, prefix string, theirs bool) []*Outcome {
	var out []*Outcome
	for i := range rows {
		r := &rows[i]
		o := &r.Ours
		if theirs {
			o = r.Theirs
		}
		if strings.HasPrefix(r.Workload.Name, prefix) && r.Skipped == "" && o != nil && !o.Stopped && o.Refused <= r.Unplaceable {
			out = append(out, o)
		}
	}
	return out
}

// growthNotes compares the time and memory of the largest workload of each line with those of the smallest.
func growthNotes(rows []Row) string {
	var b strings.Builder
	for _, line := range plotLines {
		outcomes := completeOutcomes(rows, line.prefix, line.theirs)
		if len(outcomes) < 2 {
			continue
		}
		first, last := outcomes[0], outcomes[len(outcomes)-1]
		fmt.Fprintf(&b, "* %s: %s times the pods (%s) take %s times the seconds and %s times the allocated bytes.\n", line.name,
			times(float64(last.Pods)/float64(first.Pods)), thousands(last.Pods), times(last.Seconds/first.Seconds),
			times(float64(last.Allocated)/float64(first.Allocated)))
	}
	return b.String() + "\n"
}
