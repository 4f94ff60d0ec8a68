package screen

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/migration"
)

// Number of findings with the weight Stays that are printed: mostStays less the number of other findings, but at least
// leastStays.
const (
	mostStays  = 10
	leastStays = 3
)

// leastDiffers is the number of findings with the weight Differs for which there is always room, however many findings
// stop the migration.
const leastDiffers = 6

// Migration returns the text output: the findings by weight, limited to about one screen, then the commands.
func Migration(r migration.Report) string {
	byWeight := map[migration.Weight][]migration.Finding{}
	for _, f := range r.Findings {
		byWeight[f.Weight] = append(byWeight[f.Weight], f)
	}
	out := []string{verdictOn(r, len(byWeight[migration.Stops]), len(byWeight[migration.Unknown])), ""}
	out = append(out, found("stops", byWeight[migration.Stops], screenLines)...)
	out = append(out, found("differs", byWeight[migration.Differs], max(leastDiffers, screenLines-2*len(byWeight[migration.Stops])))...)
	out = append(out, found("unseen", byWeight[migration.Unknown], mostUnknown+len(r.Hidden))...)
	others := len(r.Findings) - len(byWeight[migration.Stays])
	out = append(out, found("stays", byWeight[migration.Stays], max(leastStays, mostStays-others))...)
	out = append(out, commands("hand over", r.Steps.Over)...)
	out = append(out, commands("then see", r.Steps.Check)...)
	out = append(out, commands("go back", r.Steps.Back)...)
	return strings.Join(out, "\n") + "\n"
}

// verdictOn returns the first line of the output: whether the migration can start. stopping and unseen are the numbers
// of findings with the weights Stops and Unknown.
func verdictOn(r migration.Report, stopping, unseen int) string {
	name := ""
	if r.Cluster != "" {
		name = " of " + r.Cluster
	}
	switch {
	case stopping > 0:
		return message.OneLine(fmt.Sprintf("stop: %s to fix before the migration%s", output.Count(stopping, "problem"), name))
	case len(r.Hidden) > 0:
		return message.OneLine(fmt.Sprintf("not judged: %s could not be read, and may block the migration%s",
			output.Count(len(r.Hidden), "item"), name))
	case unseen > 0:
		return message.OneLine(fmt.Sprintf("go, as far as could be read: nothing blocks the migration%s", name))
	}
	return message.OneLine(fmt.Sprintf("go: nothing blocks the migration%s", name))
}

// found returns the lines of findings of one weight: one for each finding and one for its fix. If there are more than
// room findings, the last line has the number of those that are left out.
func found(head string, all []migration.Finding, room int) []string {
	var out []string
	for i, f := range all {
		if i == room-1 && len(all) > room {
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

// commands returns the commands, indented below a heading.
func commands(head string, all []string) []string {
	out := []string{"", head + ":"}
	for _, c := range all {
		out = append(out, "  "+message.OneLine(c))
	}
	return out
}
