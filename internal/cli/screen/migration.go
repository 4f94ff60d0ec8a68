package screen

import (
	"fmt"
	"strings"

	"github.com/joiner-sh/joiner/internal/cli/message"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/migration"
)

// Number of "stays" findings that are printed: mostStays if there are no other findings, at least leastStays.
const (
	mostStays  = 10
	leastStays = 3
)

// Migration returns the text output: the findings by weight, limited to about one screen, then the commands.
func Migration(r migration.Report) string {
	by := map[migration.Weight][]migration.Finding{}
	for _, f := range r.Findings {
		by[f.Weight] = append(by[f.Weight], f)
	}
	out := []string{verdictOn(r, len(by[migration.Stops]), len(by[migration.Unknown])), ""}
	out = append(out, found("stops", by[migration.Stops], screenLines)...)
	out = append(out, found("differs", by[migration.Differs], max(6, screenLines-2*len(by[migration.Stops])))...)
	out = append(out, found("unseen", by[migration.Unknown], mostUnknown+len(r.Hidden))...)
	others := len(r.Findings) - len(by[migration.Stays])
	out = append(out, found("stays", by[migration.Stays], max(leastStays, mostStays-others))...)
	out = append(out, commands("hand over", r.Steps.Over)...)
	out = append(out, commands("then see", r.Steps.Check)...)
	out = append(out, commands("go back", r.Steps.Back)...)
	return strings.Join(out, "\n") + "\n"
}

// verdictOn returns the first line of the output.
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

// found returns the lines of findings of one weight: one for each finding and one for its fix, for at most room
// findings.
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
