package faults

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Summary contains the numbers of a report.
type Summary struct {
	Faults, First, AtAll, Early, Pasted int
	ByHand                              int           // fixed in the editor that the fix opens
	Misled                              int           // faults before whose cause doctor reported another one first
	Median, Worst                       time.Duration // from the launch until found
	RanMedian, RanWorst                 time.Duration // from the fix until pods ran
	Pairs, Both                         int
	Alarms                              int
}

// Summary computes the numbers.
func (r Report) Summary() Summary {
	s := Summary{Faults: len(r.Results), Pairs: len(r.Pairs), Alarms: len(r.Healthy.Alarms)}
	var times, ran []time.Duration
	for _, one := range r.Results {
		s.First += count(one.First)
		s.AtAll += count(one.First || one.AtAll)
		s.Early += count(one.First && one.Early)
		s.Pasted += count(one.Fixed && !one.ByHand)
		s.ByHand += count(one.Fixed && one.ByHand)
		s.Misled += count(len(one.Wrong) > 0)
		if one.First && !one.Early {
			times = append(times, one.After)
		}
		if one.Fixed {
			ran = append(ran, one.Ran)
		}
	}
	s.Median, s.Worst = medianAndWorst(times)
	s.RanMedian, s.RanWorst = medianAndWorst(ran)
	for _, p := range r.Pairs {
		s.Both += count(p.Both)
	}
	return s
}

// medianAndWorst returns 0 for no times. It sorts the slice in place.
func medianAndWorst(times []time.Duration) (median, worst time.Duration) {
	slices.Sort(times)
	if n := len(times); n > 0 {
		return times[n/2], times[n-1]
	}
	return 0, 0
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Short lists the requirements that are not met, one per line.
func (r Report) Short() []string {
	var out []string
	for _, one := range r.Results {
		if one.Err != nil {
			out = append(out, fmt.Sprintf("%s: %v", one.Fault.Name, one.Err))
		}
	}
	for _, p := range r.Pairs {
		if p.Err != nil {
			out = append(out, fmt.Sprintf("%s and %s: %v", p.One.Name, p.Other.Name, p.Err))
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
The test breaks something and runs ` + "`joiner doctor`" + `, with read permissions only, until its first finding is the fault.
Then it pastes the printed fix into a shell. Pods must run, and doctor must find nothing more.

* *found* counts from the launch of the first instance; some causes are known before a launch.
* *pods run after the fix* counts from the paste, with pods already waiting. It includes the commands of the fix, and an instance's boot,
  which takes less than a second in the lab.

| what | number |
|---|---|
`)
	for _, row := range r.numbers() {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	b.WriteString("\n")
	r.writeFaults(&b)
	r.writePairs(&b)
	writeUntried(&b)
	return b.String()
}

// numbers returns the rows of the report's first table.
func (r Report) numbers() [][2]string {
	s := r.Summary()
	seconds := func(median, worst time.Duration) string {
		return fmt.Sprintf("median %.1f, worst %.1f", median.Seconds(), worst.Seconds())
	}
	return [][2]string{
		{"faults", strconv.Itoa(s.Faults)},
		{"found first", strconv.Itoa(s.First)},
		{"found at all", strconv.Itoa(s.AtAll)},
		{"found before anything was launched", strconv.Itoa(s.Early)},
		{"seconds from the launch until found, of the others", seconds(s.Median, s.Worst)},
		{"another cause reported first", strconv.Itoa(s.Misled)},
		{"fixed by pasting the printed command into a shell", strconv.Itoa(s.Pasted)},
		{"fixed in the editor that the printed command opens", strconv.Itoa(s.ByHand)},
		{"seconds from pasting the fix until pods run", seconds(s.RanMedian, s.RanWorst)},
		{fmt.Sprintf("two faults at once, pairs drawn with seed %d", r.Seed), fmt.Sprintf("both found in %d of %d", s.Both, s.Pairs)},
		{"healthy scenes", fmt.Sprintf("%d, while doctor was asked %d times", r.Healthy.Scenes, r.Healthy.Asked)},
		{"false alarms: findings worse than fine in healthy scenes", strconv.Itoa(s.Alarms)},
		{fmt.Sprintf("time for all of it, in %d labs side by side", r.Labs), r.Took.Round(time.Second).String()},
	}
}

func (r Report) writeFaults(b *strings.Builder) {
	b.WriteString("## Faults\n\n`lab fault NAME` injects one in a running lab.\n\n| fault | what it does | check | found | pods run after the fix | |\n|---|---|---|---|---|---|\n")
	for _, one := range r.Results {
		found, fix, note := "no", "", ""
		switch {
		case one.First && one.Early:
			found = "before the launch"
		case one.First:
			found = fmt.Sprintf("%.1f s", one.After.Seconds())
		case one.AtAll:
			found = "not first"
		}
		if one.Fixed {
			fix = fmt.Sprintf("%.1f s", one.Ran.Seconds())
			if one.ByHand {
				fix += ", edited"
			}
		}
		if len(one.Wrong) > 0 {
			note = "first reported: " + cell(one.Wrong[0])
		}
		fmt.Fprintf(b, "| `%s` | %s | [%s](checks/%s.md) | %s | %s | %s |\n", one.Fault.Name, cell(one.Fault.What),
			one.Fault.Check, one.Fault.Check, found, fix, note)
	}
	b.WriteString("\n")
}

func (r Report) writePairs(b *strings.Builder) {
	b.WriteString("## Two at once\n\n| fault | and | both found |\n|---|---|---|\n")
	for _, p := range r.Pairs {
		found := "no"
		if p.Both {
			found = "yes"
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", p.One.Name, p.Other.Name, found)
	}
	b.WriteString("\n")
}

func writeUntried(b *strings.Builder) {
	b.WriteString("## Checks without a fault\n\nTheir tests are of evidence, in package diagnosis.\n\n| check | why no fault makes it true in the lab |\n|---|---|\n")
	reasons := Untried()
	for _, id := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(b, "| [%s](checks/%s.md) | %s |\n", id, id, reasons[id])
	}
}

// cell escapes text for a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
