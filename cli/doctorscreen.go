package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/diagnosis"
	"github.com/joiner-sh/joiner/view"
)

// A screen of a terminal as it is opened: what is told must fit on one.
const (
	screenLines = 24
	mostLines   = 2 // of evidence for one finding
	mostUnknown = 3
)

// screen tells the findings: the first in full, its cause in the first lines, others as far as there is room, and last of what nothing
// could be seen.
func screen(findings []diagnosis.Finding, unseen []diagnosis.Unseen) string {
	worst := diagnosis.Worst(findings)
	tail := closing(findings, unseen)
	var out []string
	told := 0
	for _, f := range worst {
		block := inFull(f)
		if told > 0 && (f.Follows != "" || len(out)+len(block)+len(tail)+1 > screenLines) {
			break
		}
		out = append(out, block...)
		told++
	}
	if rest := worst[told:]; len(rest) > 0 {
		room := max(1, screenLines-len(out)-len(tail)-1)
		for i, f := range rest {
			if i == room-1 && len(rest) > room {
				out = append(out, fmt.Sprintf("and %d more: -o json has them", len(rest)-i))
				break
			}
			out = append(out, inShort(f))
		}
	}
	return strings.Join(append(out, tail...), "\n") + "\n"
}

// inFull tells a finding with its evidence and its fix.
func inFull(f diagnosis.Finding) []string {
	head := fmt.Sprintf("%s %s, %s", f.Check, f.Verdict, f.Certainty)
	if f.Subject != "" {
		head += ": " + f.Subject
	}
	out := []string{oneLine(head), "  " + oneLine(f.Cause)}
	for i, line := range f.Evidence {
		if i == mostLines && len(f.Evidence) > mostLines+1 {
			out = append(out, fmt.Sprintf("  seen  and %d more lines", len(f.Evidence)-i))
			break
		}
		out = append(out, "  seen  "+oneLine(line))
	}
	for i, line := range strings.Split(f.Fix, "\n") {
		switch {
		case line == "":
		case i == 0:
			out = append(out, "  fix   "+oneLine(line))
		default:
			out = append(out, "        "+oneLine(line))
		}
	}
	return append(out, "  more  "+f.Page, "")
}

// inShort tells a finding in one line.
func inShort(f diagnosis.Finding) string {
	text := fmt.Sprintf("%s %s: %s", f.Check, f.Verdict, f.Cause)
	if f.Follows != "" {
		text += " (follows from " + f.Follows + ")"
	}
	return oneLine(text)
}

// closing tells what could not be judged, grouped by reason, how many checks are fine, and in the last lines, which are what stands
// above the prompt, of what nothing could be seen.
func closing(findings []diagnosis.Finding, unseen []diagnosis.Unseen) []string {
	fine, reasons := map[string]bool{}, map[string][]string{}
	bad, open := map[string]bool{}, map[string]bool{}
	for _, f := range findings {
		switch f.Verdict {
		case diagnosis.Fine:
			fine[f.Check] = true
		case diagnosis.Unknown:
			bad[f.Check], open[f.Check] = true, true
			if slices.ContainsFunc(unseen, func(u diagnosis.Unseen) bool { return u.Explains(f) }) {
				continue // said once, below
			}
			if !slices.Contains(reasons[f.Cause], f.Check) {
				reasons[f.Cause] = append(reasons[f.Cause], f.Check)
			}
		default:
			bad[f.Check] = true
		}
	}
	var out []string
	all := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		if d := len(reasons[b]) - len(reasons[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, why := range all {
		if i == mostUnknown && len(all) > mostUnknown {
			out = append(out, fmt.Sprintf("and more reasons, %d, why checks could not be made: -o json has them", len(all)-i))
			break
		}
		out = append(out, oneLine(fmt.Sprintf("not judged: %s (%s)", why, listed(reasons[why]))))
	}
	good := 0
	for check := range fine {
		if !bad[check] {
			good++
		}
	}
	sum := view.Count(good, "check") + " fine"
	if len(open) > 0 {
		sum += fmt.Sprintf(", %d could not be made", len(open))
	}
	out = append(out, sum)
	for _, u := range unseen {
		out = append(out, oneLine(u.String()))
	}
	return out
}

// listed names the first few checks.
func listed(checks []string) string {
	const most = 4
	if len(checks) <= most {
		return strings.Join(checks, ", ")
	}
	return fmt.Sprintf("%s and %d more checks", strings.Join(checks[:most-1], ", "), len(checks)-most+1)
}
