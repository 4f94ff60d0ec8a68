package screen

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/migration"
)

// Limits of the findings with the weight Stays. The limit is maxStays minus the number of findings with other weights,
// but not less than minStays.
const (
	maxStays = 10
	minStays = 3
)

// minDiffers is the least value of the limit for findings with the weight Differs. Each finding that stops the
// migration reduces that limit by its two lines.
const minDiffers = 6

// Migration returns the text output: the findings by weight, limited to about one screen, then the commands.
func Migration(r migration.Report) string {
	byWeight := map[migration.Weight][]migration.Finding{}
	for _, f := range r.Findings {
		byWeight[f.Weight] = append(byWeight[f.Weight], f)
	}
	out := []string{verdictLine(r, len(byWeight[migration.Stops]), len(byWeight[migration.Unknown])), ""}
	out = append(out, findingLines("stops", byWeight[migration.Stops], screenLines)...)
	out = append(out, findingLines("differs", byWeight[migration.Differs], max(minDiffers, screenLines-2*len(byWeight[migration.Stops])))...)
	out = append(out, findingLines("unseen", byWeight[migration.Unknown], maxReasons+len(r.Hidden))...)
	others := len(r.Findings) - len(byWeight[migration.Stays])
	out = append(out, findingLines("stays", byWeight[migration.Stays], max(minStays, maxStays-others))...)
	out = append(out, commandLines("hand over", r.Steps.Over)...)
	out = append(out, commandLines("then see", r.Steps.Check)...)
	out = append(out, commandLines("go back", r.Steps.Back)...)
	return strings.Join(out, "\n") + "\n"
}

// verdictLine returns the first line of the output: whether the migration can start. stopping and unknown are the
// numbers of findings with the weights Stops and Unknown.
func verdictLine(r migration.Report, stopping, unknown int) string {
	name := ""
	if r.Cluster != "" {
		name = " of " + r.Cluster
	}
	switch {
	case stopping > 0:
		return message.OneLine(fmt.Sprintf("stop: %s to fix before the migration%s", output.Count(stopping, "problem"), name))
	case len(r.Hidden) > 0: // requested data that could not be read may contain a reason to stop
		return message.OneLine(fmt.Sprintf("not judged: %s could not be read, and may block the migration%s",
			output.Count(len(r.Hidden), "item"), name))
	case unknown > 0: // findings with the weight Unknown do not block the migration
		return message.OneLine(fmt.Sprintf("go, as far as could be read: nothing blocks the migration%s", name))
	}
	return message.OneLine(fmt.Sprintf("go: nothing blocks the migration%s", name))
}

// findingLines returns the lines of findings of one weight: one for each finding and one for its fix. If there are more
// than limit findings, the last line has the number of the findings that are left out.
func findingLines(head string, all []migration.Finding, limit int) []string {
	var out []string
	for i, f := range all {
		if i == limit-1 && len(all) > limit {
			out = append(out, fmt.Sprintf("%-9s and %d more: -o json has them", head, len(all)-i))
			break
		}
		text := f.Says
		if f.Subject != "" {
			text = f.Subject + ": " + text
		}
		out = append(out, message.OneLine(fmt.Sprintf("%-9s %s", head, text)))
		if f.Fix != "" {
			out = append(out, message.OneLine(fmt.Sprintf("%-9s %s", "  fix", f.Fix)))
		}
	}
	return out
}

func commandLines(head string, all []string) []string {
	out := []string{"", head + ":"}
	for _, c := range all {
		out = append(out, "  "+message.OneLine(c))
	}
	return out
}
