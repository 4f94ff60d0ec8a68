package faults

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Summary contains the counts and times of a report.
type Summary struct {
	Faults              int           // faults that were played
	First               int           // faults whose expected finding was the first finding
	Found               int           // faults whose expected finding was one of the findings
	BeforeLaunch        int           // faults whose expected finding was the first finding, before any launch
	Pasted              int           // faults that the printed commands fixed
	ByHand              int           // faults that were fixed in the editor that the printed command opens
	WrongFirst          int           // faults for which doctor first reported another cause
	Median, Worst       time.Duration // from the launch until the fault was found; without the faults of BeforeLaunch
	FixMedian, FixWorst time.Duration // from the start of the fix until pods ran
	Pairs               int           // pairs of faults that were played
	BothFound           int           // pairs of which doctor found both faults
	Alarms              int           // false alarms
}

// Summary computes the counts and times of the report.
func (r Report) Summary() Summary {
	s := Summary{Faults: len(r.Results), Pairs: len(r.Pairs), Alarms: len(r.Healthy.Alarms)}
	var foundTimes, fixTimes []time.Duration
	for _, result := range r.Results {
		s.First += count(result.First)
		s.Found += count(result.First || result.Found)
		s.BeforeLaunch += count(result.First && result.BeforeLaunch)
		s.Pasted += count(result.Fixed && !result.ByHand)
		s.ByHand += count(result.Fixed && result.ByHand)
		s.WrongFirst += count(len(result.WrongFirst) > 0)
		if result.First && !result.BeforeLaunch {
			foundTimes = append(foundTimes, result.FoundAfter)
		}
		if result.Fixed {
			fixTimes = append(fixTimes, result.FixTime)
		}
	}
	s.Median, s.Worst = medianAndWorst(foundTimes)
	s.FixMedian, s.FixWorst = medianAndWorst(fixTimes)
	for _, p := range r.Pairs {
		s.BothFound += count(p.BothFound)
	}
	return s
}

// medianAndWorst returns the median and the maximum of the times; 0 without times. It sorts the slice in place.
func medianAndWorst(times []time.Duration) (median, worst time.Duration) {
	slices.Sort(times)
	if n := len(times); n > 0 {
		return times[n/2], times[n-1]
	}
	return 0, 0
}

func count(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

// Failures lists the failed faults and pairs, and the false alarms, one per line.
func (r Report) Failures() []string {
	var out []string
	for _, result := range r.Results {
		if result.Err != nil {
			out = append(out, fmt.Sprintf("%s: %v", result.Fault.Name, result.Err))
		}
	}
	for _, p := range r.Pairs {
		if p.Err != nil {
			out = append(out, fmt.Sprintf("%s and %s: %v", p.FaultA.Name, p.FaultB.Name, p.Err))
		}
	}
	for _, alarm := range r.Healthy.Alarms {
		out = append(out, "false alarm: "+alarm)
	}
	return out
}

// Markdown returns the report for docs/diagnosis-report.md.
func (r Report) Markdown() string {
	var b strings.Builder
	b.WriteString(`# What joiner doctor finds

` + "`make diagnosis-report`" + ` writes this page. Each fault is injected in a lab: a real control plane, an emulated AWS, and the running controller.
The test breaks something and runs ` + "`joiner doctor`" + `, with read permissions only, until the first finding is the injected fault.
Then it pastes the printed fix into a shell. Pods must run, and doctor must report no more problems.

* *found* is the time since the launch of the first instance. Some faults are found before a launch.
* *pods run after the fix* is the time since the fix was pasted, while pods were pending. It includes the commands of the fix
  and the boot of an instance, which takes less than a second in the lab.

| what | number |
|---|---|
`)
	for _, row := range r.numbers() {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	b.WriteString("\n")
	r.writeFaults(&b)
	r.writePairs(&b)
	writeChecksWithoutFault(&b)
	return b.String()
}

// numbers returns the rows of the report's first table: description and value.
func (r Report) numbers() [][2]string {
	s := r.Summary()
	seconds := func(median, worst time.Duration) string {
		return fmt.Sprintf("median %.1f, worst %.1f", median.Seconds(), worst.Seconds())
	}
	return [][2]string{
		{"faults", strconv.Itoa(s.Faults)},
		{"found as the first finding", strconv.Itoa(s.First)},
		{"found", strconv.Itoa(s.Found)},
		{"found before anything was launched", strconv.Itoa(s.BeforeLaunch)},
		{"seconds from the launch until found, for the other faults", seconds(s.Median, s.Worst)},
		{"another cause reported first", strconv.Itoa(s.WrongFirst)},
		{"fixed by pasting the printed command into a shell", strconv.Itoa(s.Pasted)},
		{"fixed in the editor that the printed command opens", strconv.Itoa(s.ByHand)},
		{"seconds from pasting the fix until pods run", seconds(s.FixMedian, s.FixWorst)},
		{fmt.Sprintf("pairs of faults at the same time, selected with seed %d", r.Seed),
			fmt.Sprintf("both found in %d of %d", s.BothFound, s.Pairs)},
		{"healthy scenes", fmt.Sprintf("%d, with %d runs of doctor", r.Healthy.Scenes, r.Healthy.DoctorRuns)},
		{"false alarms: findings worse than fine in healthy scenes", strconv.Itoa(s.Alarms)},
		{fmt.Sprintf("total time, in %d labs in parallel", r.Labs), r.Took.Round(time.Second).String()},
	}
}

func (r Report) writeFaults(b *strings.Builder) {
	b.WriteString("## Faults\n\n`lab fault NAME` injects a fault into a running lab.\n\n| fault | description | check | found | pods run after the fix | |\n|---|---|---|---|---|---|\n")
	for _, result := range r.Results {
		found, fix, note := "no", "", ""
		switch {
		case result.First && result.BeforeLaunch:
			found = "before the launch"
		case result.First:
			found = fmt.Sprintf("%.1f s", result.FoundAfter.Seconds())
		case result.Found:
			found = "not first"
		}
		if result.Fixed {
			fix = fmt.Sprintf("%.1f s", result.FixTime.Seconds())
			if result.ByHand {
				fix += ", edited"
			}
		}
		if len(result.WrongFirst) > 0 {
			note = "first reported: " + cell(result.WrongFirst[0])
		}
		fmt.Fprintf(b, "| `%s` | %s | [%s](checks/%s.md) | %s | %s | %s |\n", result.Fault.Name, cell(result.Fault.What),
			result.Fault.Check, result.Fault.Check, found, fix, note)
	}
	b.WriteString("\n")
}

func (r Report) writePairs(b *strings.Builder) {
	b.WriteString("## Two faults at the same time\n\n| fault | and | both found |\n|---|---|---|\n")
	for _, p := range r.Pairs {
		found := "no"
		if p.BothFound {
			found = "yes"
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", p.FaultA.Name, p.FaultB.Name, found)
	}
	b.WriteString("\n")
}

func writeChecksWithoutFault(b *strings.Builder) {
	b.WriteString("## Checks without a fault\n\nTests of package diagnosis cover these checks.\n\n| check | why the lab has no fault for the check |\n|---|---|\n")
	reasons := ChecksWithoutFault()
	for _, id := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(b, "| [%s](checks/%s.md) | %s |\n", id, id, reasons[id])
	}
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
