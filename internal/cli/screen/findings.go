// Package screen writes findings of doctor and migrate, and their progress, for a terminal.
//
// In: findings of diagnosis and of migration.
// Out: text for a user, limited to about the height of a terminal.
// Never: a judgement; the texts of findings are those of the checks.
package screen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// Limits of the text output. Evidence, except that of the first cause, is left out if the output would exceed
// screenLines, the height of a default terminal. Fixes are always printed.
const (
	screenLines = 24
	maxLines    = 2  // lines of evidence, or of following findings, before "and … more"; three lines are printed in full
	maxCauses   = 20 // maximum number of causes
	maxNames    = 4  // maximum number of subjects of one kind in a line
	maxReasons  = 3  // maximum number of reasons why checks could not run
)

// cause is a group of findings with the same check and sentence, and possibly different subjects.
type cause struct {
	diagnosis.Finding
	subjects []string
	fix      []string            // steps that correct the cause for all subjects
	look     []string            // read-only steps
	follows  []diagnosis.Finding // findings that follow from this cause
}

// causes groups findings by cause, in the order of their first findings. A finding that follows from an earlier cause
// is listed under that cause.
func causes(findings []diagnosis.Finding) []*cause {
	var out []*cause
	find := func(matches func(*cause) bool) *cause {
		if i := slices.IndexFunc(out, matches); i >= 0 {
			return out[i]
		}
		return nil
	}
	for _, f := range findings {
		if root := find(func(c *cause) bool { return f.Follows != "" && c.Check == f.Follows && c.Unused == f.Unused }); root != nil {
			root.follows = append(root.follows, f)
			continue
		}
		c := find(func(c *cause) bool {
			return c.Check == f.Check && c.Cause == f.Cause && c.Verdict == f.Verdict && c.Certainty == f.Certainty && c.Unused == f.Unused
		})
		if c == nil {
			c = &cause{Finding: f}
			out = append(out, c)
		} else {
			c.Evidence = append(slices.Clone(c.Evidence), f.Evidence...)
		}
		if f.Subject != "" && !slices.Contains(c.subjects, f.Subject) {
			c.subjects = append(c.subjects, f.Subject)
		}
		c.fix = appendSteps(c.fix, f.Fix.Correction().Steps())
		c.look = appendSteps(c.look, f.Fix.Only(fix.ReadOnly).Steps())
	}
	return out
}

// appendSteps appends to lines the texts of the steps that are not in lines yet.
func appendSteps(lines []string, steps []fix.Step) []string {
	for _, s := range steps {
		if line := s.String(); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Findings returns the text output: one block for each cause with its subjects, fix and, if there is room, evidence.
// The worst cause comes first; causes of EC2NodeClasses that no NodePool uses come last. closingLines makes the last
// lines. truncated has a line for each list that was read only in part.
func Findings(findings []diagnosis.Finding, unseen []diagnosis.UnreadableSystem, truncated []string) string {
	all := causes(diagnosis.Actionable(findings))
	tail := closingLines(findings, unseen, truncated)
	var out []string
	for i, c := range all {
		if i == maxCauses {
			out = append(out, fmt.Sprintf("and %s more: -o json has them", output.Count(len(all)-i, "cause")))
			break
		}
		block := append(c.lines(true), "")
		if i > 0 && len(out)+len(block)+len(tail) > screenLines {
			block = c.lines(false)
		}
		out = append(out, block...)
	}
	return strings.Join(append(out, tail...), "\n") + "\n"
}

// FindingInFull returns the block of one finding with its evidence, as in Findings.
func FindingInFull(f diagnosis.Finding) []string {
	return append(causes([]diagnosis.Finding{f})[0].lines(true), "")
}

// lines returns the block of a cause. If isFull is false, the block has no evidence and no page of the documentation.
func (c *cause) lines(isFull bool) []string {
	head := fmt.Sprintf("%s %s, %s", c.Check, c.Verdict, c.Certainty)
	if len(c.subjects) > 0 {
		head += ": " + subjectsText(c.subjects)
	}
	if c.Unused {
		head += " (no NodePool uses it)"
	}
	out := []string{message.OneLine(head), "  " + message.OneLine(c.Cause)}
	for i, line := range c.Evidence {
		isCut := i == maxLines && len(c.Evidence) > maxLines+1
		if isCut || !isFull {
			if isCut && isFull {
				out = append(out, fmt.Sprintf("  seen  and %d more lines", len(c.Evidence)-i))
			}
			break
		}
		out = append(out, "  seen  "+message.OneLine(line))
	}
	for _, part := range []struct {
		label string
		lines []string
	}{{"  fix   ", c.fix}, {"  look  ", c.look}} {
		label := part.label
		for _, line := range part.lines {
			out, label = append(out, label+message.OneLine(line)), "        "
		}
	}
	for i, f := range c.follows {
		if i == maxLines && len(c.follows) > maxLines+1 {
			out = append(out, fmt.Sprintf("  then  and %d more findings follow", len(c.follows)-i))
			break
		}
		out = append(out, "  then  "+shortFinding(f))
	}
	if isFull {
		out = append(out, "  more  "+c.Page)
	}
	return out
}

// subjectsText returns the subjects, grouped by kind: "EC2NodeClass a, b; NodePool c".
func subjectsText(subjects []string) string {
	var kinds []string
	names := map[string][]string{}
	for _, s := range subjects {
		kind, name, _ := strings.Cut(s, " ")
		if names[kind] == nil {
			kinds = append(kinds, kind)
		}
		names[kind] = append(names[kind], name)
	}
	var out []string
	for _, kind := range kinds {
		all := names[kind]
		text := kind + " " + strings.Join(all[:min(len(all), maxNames)], ", ")
		if len(all) > maxNames {
			text += fmt.Sprintf(" and %d more", len(all)-maxNames)
		}
		out = append(out, strings.TrimSpace(text))
	}
	return strings.Join(out, "; ")
}

func shortFinding(f diagnosis.Finding) string {
	text := fmt.Sprintf("%s %s", f.Check, f.Verdict)
	if f.Subject != "" {
		text += ", " + f.Subject
	}
	return message.OneLine(text + ": " + f.Cause)
}

// closingLines returns the last lines of the output:
//
//   - the checks that could not run, by reason
//   - the lists that were read only in part
//   - the number of passed checks, and the number of checks that could not run
//   - the systems that could not be read
func closingLines(findings []diagnosis.Finding, unseen []diagnosis.UnreadableSystem, truncated []string) []string {
	fine, reasons := map[string]bool{}, map[string][]string{} // passed checks; checks that could not run, by reason
	notFine, unknown := map[string]bool{}, map[string]bool{}
	for _, f := range findings {
		switch f.Verdict {
		case diagnosis.Fine:
			fine[f.Check] = true
		case diagnosis.Unknown:
			notFine[f.Check], unknown[f.Check] = true, true
			if slices.ContainsFunc(unseen, func(u diagnosis.UnreadableSystem) bool { return u.Explains(f) }) {
				continue // reported once, below
			}
			if !slices.Contains(reasons[f.Cause], f.Check) {
				reasons[f.Cause] = append(reasons[f.Cause], f.Check)
			}
		default:
			notFine[f.Check] = true
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
		if i == maxReasons && len(all) > maxReasons {
			out = append(out, fmt.Sprintf("and %d more reasons why checks could not run: -o json has them", len(all)-i))
			break
		}
		out = append(out, message.OneLine(fmt.Sprintf("not judged: %s (%s)", why, checksText(reasons[why]))))
	}
	for _, list := range truncated {
		out = append(out, message.OneLine("only a part was read: "+list))
	}
	passed := 0
	for check := range fine {
		if !notFine[check] {
			passed++
		}
	}
	summary := output.Count(passed, "check") + " fine"
	if len(unknown) > 0 {
		summary += fmt.Sprintf(", %d could not run", len(unknown))
	}
	out = append(out, summary)
	for _, u := range unseen {
		out = append(out, message.OneLine(u.String()))
	}
	return out
}

func checksText(checks []string) string {
	const maxChecks = 4
	if len(checks) <= maxChecks {
		return strings.Join(checks, ", ")
	}
	return fmt.Sprintf("%s and %d more checks", strings.Join(checks[:maxChecks-1], ", "), len(checks)-maxChecks+1)
}
