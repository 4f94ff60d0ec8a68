package compare

import (
	"fmt"
	"strings"
)

// sweeps are the lines of the plot. Each line has the rows whose names start with prefix: upstream's results if theirs
// is set, Joiner's otherwise.
var sweeps = []struct {
	prefix, name, color string
	theirs              bool
}{
	{"fixed-", "upstream, 500 deployments", "#c0392b", true},
	{"fixed-", "joiner, 500 deployments", "#1f618d", false},
	{"growing-", "joiner, deployments of 20 pods", "#229954", false},
	{"constrained-", "joiner, 500 deployments with mixed constraints", "#7d3c98", false},
}

// Growth plots time and memory against the number of pods.
func Growth(rows []Row) string {
	time := Plot{Title: "time of a plan", Below: "pods", Left: "seconds"}
	memory := Plot{Title: "memory allocated for a plan", Below: "pods", Left: "MiB"}
	for _, s := range sweeps {
		outcomes := sweepOf(rows, s.prefix, s.theirs)
		if len(outcomes) == 0 {
			continue
		}
		seconds, mib := Series{Name: s.name, Color: s.color}, Series{Name: s.name, Color: s.color}
		for _, o := range outcomes {
			seconds.X, seconds.Y = append(seconds.X, float64(o.Pods)), append(seconds.Y, o.Seconds)
			mib.X, mib.Y = append(mib.X, float64(o.Pods)), append(mib.Y, float64(o.Allocated)/(1<<20))
		}
		time.Series, memory.Series = append(time.Series, seconds), append(memory.Series, mib)
	}
	return SVG(time, memory)
}

// sweepOf returns the complete plans of one line, in the order of the rows.
func sweepOf(rows []Row, prefix string, theirs bool) []*Outcome {
	var out []*Outcome
	for i := range rows {
		r := &rows[i]
		o := &r.Ours
		if theirs {
			o = r.Theirs
		}
		if strings.HasPrefix(r.Workload.Name, prefix) && r.Skipped == "" && o != nil && !o.Late && o.Refused <= r.Hopeless {
			out = append(out, o)
		}
	}
	return out
}

// growth describes how much more time and memory the largest workload of each line needs than the smallest.
func growth(rows []Row) string {
	var b strings.Builder
	for _, s := range sweeps {
		outcomes := sweepOf(rows, s.prefix, s.theirs)
		if len(outcomes) < 2 {
			continue
		}
		first, last := outcomes[0], outcomes[len(outcomes)-1]
		fmt.Fprintf(&b, "* %s: %s times the pods (%s) take %s times the seconds and %s times the memory.\n", s.name,
			times(float64(last.Pods)/float64(first.Pods)), thousands(last.Pods), times(last.Seconds/first.Seconds),
			times(float64(last.Allocated)/float64(first.Allocated)))
	}
	return b.String() + "\n"
}
