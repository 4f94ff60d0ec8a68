package compare

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/bench/workload"
)

// tables are the tables of the report, in order. about describes all rows of a table.
var tables = []struct {
	group workload.Group
	title string
	about string
}{
	{workload.Speed, "Speed", "700 instance types in three zones, on demand and as spot, at round prices; the NodePool allows all of them."},
	{workload.Karpenter, "Upstream's own benchmark", "The pods and the 400 fictional instance types of the benchmark inside upstream's module."},
	{workload.Prices, "Price", "The instance types of us-east-1 at their real on-demand prices, for Intel and AMD unless stated otherwise."},
	{workload.Traces, "Traces", "Tasks of a production cluster, with the offerings of the table above."},
	{workload.Sizes, "Sizes", "The offerings of the first table. Upstream runs up to the size that it plans within five minutes."},
}

var header = []string{
	"workload", "pods", "classes", "by", "seconds", "pods/s", "ratio", "allocated", "objects", "peak",
	"new nodes", "pods on existing nodes", "refused",
	"$/hour", "bound", "gap", "plan",
}

// rightAligned has the names of the right-aligned columns, separated by spaces.
const rightAligned = "pods classes seconds pods/s ratio allocated objects peak new nodes pods on existing nodes refused $/hour bound gap"

// Markdown returns a table of the rows of one group, two lines per row, with notes below.
func Markdown(rows []Row) string {
	var b strings.Builder
	b.WriteString("| " + strings.Join(header, " | ") + " |\n|")
	for _, h := range header {
		if strings.Contains(rightAligned, h) {
			b.WriteString("---:|")
		} else {
			b.WriteString("---|")
		}
	}
	b.WriteString("\n")
	var notes []string
	for i := range rows {
		r := &rows[i]
		if r.Skipped != "" {
			notes = append(notes, fmt.Sprintf("`%s` was skipped: %s.", r.Workload.Name, r.Skipped))
			continue
		}
		writeLine(&b, r, &r.Ours, "joiner")
		if r.Theirs != nil {
			writeLine(&b, r, r.Theirs, "upstream")
		}
		notes = append(notes, r.notes()...)
	}
	if len(notes) > 0 {
		b.WriteString("\n* " + strings.Join(notes, "\n* ") + "\n")
	}
	return b.String()
}

// writeLine writes the table line of one scheduler; by is its name. Columns whose value is the same for both schedulers
// are empty in upstream's line.
func writeLine(b *strings.Builder, r *Row, o *Outcome, by string) {
	ours := o == &r.Ours
	cells := []string{
		"", thousands(o.Pods), "", by, seconds(o.Seconds), thousands(int(o.PodsPerSecond())), "",
		bytes(o.Allocated), count(o.Objects), bytes(o.Peak), thousands(o.NewNodes), thousands(o.Placed), thousands(o.Refused),
		dollars(o.Price.Dollars()), "", "", o.verdict(),
	}
	if ours { // the indexes are those of header
		cells[0], cells[2] = "`"+r.Workload.Name+"` "+r.Workload.About, thousands(r.Classes)
		cells[14] = dollars(r.Bound.Dollars())
		if ratio := r.Ratio(); ratio > 0 {
			cells[6] = times(ratio)
		}
	}
	if gap, ok := r.Gap(o); ok {
		cells[15] = fmt.Sprintf("%.1f %%", gap)
	}
	if o.Stopped {
		cells[4] = "> " + cells[4]
	}
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func (o *Outcome) verdict() string {
	switch {
	case o.Stopped:
		return "stopped"
	case !o.Checked:
		return "not checked"
	case len(o.Violations) == maxViolations:
		return fmt.Sprintf("breaks %s rules or more", thousands(maxViolations))
	case len(o.Violations) > 0:
		return "breaks " + plural(len(o.Violations), "rule")
	}
	return "holds"
}

func (r *Row) notes() []string {
	var out []string
	add := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("`%s`: ", r.Workload.Name)+fmt.Sprintf(format, args...)+".")
	}
	if r.BoundScope != "" {
		add("the bound is that %s", r.BoundScope)
	}
	if r.Unplaceable > 0 {
		add("%s cannot be placed, whatever is launched", plural(r.Unplaceable, "pod"))
	}
	if r.Ours.Refused > r.Unplaceable {
		add("joiner refuses %s, so its time and price cover only the other pods; most frequent reason: %s",
			plural(r.Ours.Refused, "pod"), oneLine(r.Ours.Reason))
	}
	if len(r.Ours.Violations) > 0 {
		add("joiner's plan is wrong: %s", oneLine(r.Ours.Violations[0]))
	}
	if r.NotRun != "" {
		add("upstream was not run: %s", r.NotRun)
	}
	theirs := r.Theirs
	if theirs == nil {
		return out
	}
	if r.Workload.Smaller != nil {
		add("upstream got %s; the ratio is of pods per second", r.Workload.SmallerAbout)
	}
	if theirs.Stopped {
		add("upstream was stopped after %s s, so its plan covers only some of the pods", seconds(theirs.Seconds))
	}
	if theirs.Refused > r.Unplaceable {
		add("upstream refuses %s; most frequent reason: %s", plural(theirs.Refused, "pod"), oneLine(theirs.Reason))
	}
	if len(theirs.Violations) > 0 {
		add("a violation in upstream's plans: %s", oneLine(theirs.Violations[0]))
	}
	return out
}

// Detail returns a table with further numbers: runs, workers, CPU time, and preparation.
func Detail(rows []Row) string {
	var b strings.Builder
	b.WriteString("| workload | joiner: runs | cpu | snapshot | memory before | upstream: runs | workers | cpu | scheduler | ratio of cpu |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		if r.Skipped != "" {
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s s | %s s | %s |", r.Workload.Name, r.Ours.Runs, seconds(r.Ours.CPU), seconds(r.Ours.Prepare),
			bytes(r.Ours.Before))
		if t := r.Theirs; t != nil {
			ratio := "" // ratio of CPU time per pod; the other tables have the ratio of real time per pod
			if r.Ours.CPU > 0 {
				ratio = times(t.CPU / float64(t.Pods) / (r.Ours.CPU / float64(r.Ours.Pods)))
			}
			fmt.Fprintf(&b, " %d | %d | %s s | %s s | %s |\n", t.Runs, t.Workers, seconds(t.CPU), seconds(t.Prepare), ratio)
		} else {
			b.WriteString(" | | | | |\n")
		}
	}
	return b.String()
}

// Line describes a row in one line, as progress output.
func Line(r *Row) string {
	if r.Skipped != "" {
		return fmt.Sprintf("%-20s skipped: %s", r.Workload.Name, r.Skipped)
	}
	text := fmt.Sprintf("%-20s joiner %s", r.Workload.Name, r.brief(&r.Ours))
	if r.Theirs != nil {
		text += fmt.Sprintf(" · upstream %s · 1/%s", r.brief(r.Theirs), times(r.Ratio()))
	}
	return text
}

func (r *Row) brief(o *Outcome) string {
	text := seconds(o.Seconds) + " s"
	if o.Stopped {
		return "> " + text
	}
	text += ", " + bytes(o.Allocated) + ", $" + dollars(o.Price.Dollars())
	if gap, ok := r.Gap(o); ok {
		text += fmt.Sprintf(", gap %.1f %%", gap)
	}
	if o.Refused > 0 {
		text += ", refuses " + thousands(o.Refused)
	}
	return text + ", " + o.verdict()
}
