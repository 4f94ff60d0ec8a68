package compare

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/bench/workload"
)

// Aims returns a table of the design's targets for the rows, with the measured values.
func Aims(rows []Row) string {
	var b strings.Builder
	b.WriteString("| workload | to reach | measured | |\n|---|---|---|---|\n")
	add := func(r *Row, want, have string, reached bool) {
		if reached && r.Workload.Group == workload.Sizes {
			return // the sizes have too many rows to list their reached targets
		}
		mark := "**not yet**"
		if reached {
			mark = "reached"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Workload.Name, want, have, mark)
	}
	for i := range rows {
		if rows[i].Skipped == "" {
			aims(&rows[i], add)
		}
	}
	return b.String()
}

// aims calls add for each target of the row.
func aims(r *Row, add func(r *Row, want, have string, reached bool)) {
	complete := r.Ours.Refused <= r.Hopeless
	all := ""
	if !complete {
		all = ", but " + plural(r.Ours.Refused, "pod") + " refused"
	}
	a := r.Workload.Aim
	if a.Ratio > 0 {
		add(r, fmt.Sprintf("1/%.0f of upstream's time", a.Ratio), "1/"+times(r.Ratio())+all, complete && r.Ratio() >= a.Ratio)
	}
	if a.Seconds > 0 {
		add(r, fmt.Sprintf("at most %.0f s", a.Seconds), seconds(r.Ours.Seconds)+" s"+all, complete && r.Ours.Seconds <= a.Seconds)
	}
	if a.Bytes > 0 {
		add(r, "at most "+bytes(a.Bytes), bytes(r.Ours.Peak)+all, complete && r.Ours.Peak <= a.Bytes)
	}
	comparisons(r, complete, add)
}

// comparisons calls add for the targets that need upstream's plan, the lower bound or the verifier.
func comparisons(r *Row, complete bool, add func(r *Row, want, have string, reached bool)) {
	if t := r.Theirs; t != nil && complete && t.Refused <= r.Hopeless && t.Pods == r.Pods && !t.Late && r.Ours.Price > t.Price {
		add(r, "no dearer than upstream, "+dollars(t.Price.Dollars()), dollars(r.Ours.Price.Dollars()), false)
	}
	most := r.Workload.Kind.MostGap()
	if gap, ok := r.Gap(&r.Ours); r.Pods >= 1000 && r.Bound > 0 && most > 0 {
		have := fmt.Sprintf("%.1f %%", gap)
		if !ok {
			have = "no plan for all pods"
		}
		add(r, fmt.Sprintf("within %.0f %% of the bound", most), have, ok && gap <= most)
	}
	if len(r.Ours.Violations) > 0 {
		add(r, "a plan that holds", "it "+r.Ours.verdict(), false)
	}
}
