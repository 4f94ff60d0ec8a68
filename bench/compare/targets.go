package compare

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/bench/workload"
)

// TargetTable returns a Markdown table of the design's targets for the rows, with the measured values.
func TargetTable(rows []Row) string {
	var b strings.Builder
	b.WriteString("| workload | to reach | measured | |\n|---|---|---|---|\n")
	add := func(r *Row, want, have string, reached bool) {
		if reached && r.Workload.Group == workload.Sizes {
			return // the group Sizes has too many rows to list their reached targets
		}
		mark := "**not yet**"
		if reached {
			mark = "reached"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Workload.Name, want, have, mark)
	}
	for i := range rows {
		if rows[i].Skipped == "" {
			addTargets(&rows[i], add)
		}
	}
	return b.String()
}

// addTargets calls add for each target of the row. want describes the target, and have the measured value.
func addTargets(r *Row, add func(r *Row, want, have string, reached bool)) {
	isComplete := r.Ours.Refused <= r.Unplaceable
	suffix := ""
	if !isComplete {
		suffix = ", but " + plural(r.Ours.Refused, "pod") + " refused"
	}
	t := r.Workload.Target
	if t.Ratio > 0 {
		add(r, fmt.Sprintf("1/%.0f of upstream's time", t.Ratio), "1/"+times(r.Ratio())+suffix, isComplete && r.Ratio() >= t.Ratio)
	}
	if t.Seconds > 0 {
		add(r, fmt.Sprintf("at most %.0f s", t.Seconds), seconds(r.Ours.Seconds)+" s"+suffix, isComplete && r.Ours.Seconds <= t.Seconds)
	}
	if t.Bytes > 0 {
		add(r, "at most "+bytes(t.Bytes), bytes(r.Ours.Peak)+suffix, isComplete && r.Ours.Peak <= t.Bytes)
	}
	addComparisons(r, isComplete, add)
}

// addComparisons calls add for the targets that need upstream's plan, the lower bound or the checker. isComplete says
// that Joiner's plan places all pods that can be placed. The gap has no target below 1,000 pods.
func addComparisons(r *Row, isComplete bool, add func(r *Row, want, have string, reached bool)) {
	if t := r.Theirs; t != nil {
		bothComplete := isComplete && t.Refused <= r.Unplaceable && t.Pods == r.Pods && !t.Stopped
		if bothComplete && r.Ours.Price > t.Price {
			add(r, "no dearer than upstream, "+dollars(t.Price.Dollars()), dollars(r.Ours.Price.Dollars()), false)
		}
	}
	maxGap := r.Workload.Kind.MaxGap()
	if gap, ok := r.Gap(&r.Ours); r.Pods >= 1000 && r.Bound > 0 && maxGap > 0 {
		have := fmt.Sprintf("%.1f %%", gap)
		if !ok {
			have = "no plan for all pods"
		}
		add(r, fmt.Sprintf("within %.0f %% of the bound", maxGap), have, ok && gap <= maxGap)
	}
	if len(r.Ours.Violations) > 0 {
		add(r, "a plan that holds", "it "+r.Ours.verdict(), false)
	}
}
