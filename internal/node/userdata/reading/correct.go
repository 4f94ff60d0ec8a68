package reading

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// Correction is a change of the user data that an instance's console output suggests.
type Correction struct {
	Flag    string // flag of the kubelet to remove, without dashes; empty: none
	Program string // program whose calls are replaced by true; empty: none
	Forgive string // program whose failure must not end the script; empty: none
	MaxPods int    // max-pods to set if the image does not know the instance type; 0: not set
}

// Correct fixes the problems of the user's own user data, in.Own, that can be fixed without a decision of the user.
// checks restricts the fixed problems to those with one of these values of Problem.Check; none means all. read returns
// the problems of a candidate text. Each change reduces the total severity of the problems. Correct returns the text
// unchanged if it can fix nothing.
func Correct(in userdata.Input, read func(own string) []userdata.Problem, checks ...string) string {
	const maxChanges = 40 // each call of step reads several candidates
	own := in.Own
	problems := read(own)
	for range maxChanges {
		better, left, ok := step(in, own, problems, read, checks)
		if !ok {
			break
		}
		own, problems = better, left
	}
	return own
}

// step makes one change to the text own, which has the problems. It returns the changed text and its problems; ok is
// false if no change reduces the total severity.
func step(in userdata.Input, own string, problems []userdata.Problem, read func(string) []userdata.Problem,
	checks []string) (better string, left []userdata.Problem, ok bool) {
	for _, p := range problems {
		if len(checks) > 0 && !slices.Contains(checks, p.Check()) || p.At.Part > 0 || p.At.Ours {
			continue
		}
		for _, text := range candidates(in, own, p) {
			if text == own {
				continue
			}
			if remaining := read(text); weight(remaining) < weight(problems) {
				return text, remaining, true
			}
		}
	}
	return own, problems, false
}

// Grant applies the correction to the user's own user data. It returns the text unchanged if there is nothing to
// change.
func Grant(in userdata.Input, c Correction) string {
	own := in.Own
	if c.Flag != "" {
		if text, ok := rewriteCall(in, own, strings.TrimLeft(c.Flag, "-")); ok {
			own = text
		} else {
			own = withoutFlag(own, strings.TrimLeft(c.Flag, "-"))
		}
	}
	if c.MaxPods > 0 {
		in.Own = own
		own = limited(in, c.MaxPods)
	}
	if c.Program != "" {
		own = eachCall(own, c.Program, func(string) string { return "true" })
	}
	if c.Forgive != "" {
		own = eachCall(own, c.Forgive, func(call string) string { return call + " || true" })
	}
	return own
}

// weight returns the total severity of problems. A problem that is Certain weighs 9, Likely 3 and Possible 1, and a
// hundred times as much if its harm is NeverJoins.
func weight(all []userdata.Problem) int {
	sum := 0
	for _, p := range all {
		one := map[userdata.Certainty]int{userdata.Certain: 9, userdata.Likely: 3, userdata.Possible: 1}[p.Certainty]
		if p.Harm == userdata.NeverJoins {
			one *= 100
		}
		sum += one
	}
	return sum
}

// candidates returns changed texts that may fix a problem, the smallest change first. The caller must read each of them
// to check whether the problem is fixed.
func candidates(in userdata.Input, own string, p userdata.Problem) []string {
	l := linesOf(own)
	switch p.Kind {
	case userdata.TooLong:
		return []string{shorter(own)}
	case userdata.ProxyCatches:
		return []string{l.replaced(p.At.Line, func(line string) string { return kubelet.Excepted(line, p.Write) })}
	case userdata.OtherArch:
		return []string{l.replaced(p.At.Line, counterpart), l.replaced(p.At.Line, queryingArch)}
	case userdata.UnknownPart:
		if in.Family != userdata.FamilyCustom || parsed(own) == nil {
			return nothing(in)
		}
		return []string{"#!/bin/bash\n" + own}
	case userdata.ScriptBroken:
		return []string{
			strings.ReplaceAll(own, "\r\n", "\n"), "#!/bin/bash\n" + own,
			l.replaced(p.At.Line, func(line string) string { return line + quoteAt(line, p.At.Column) }),
		}
	case userdata.NeverReached:
		return []string{l.replaced(p.At.Line, func(string) string { return "true" })}
	case userdata.SettingUnknown, userdata.SettingInvalid, userdata.NodeConfigBroken, userdata.BadMIME,
		userdata.OtherFamily, userdata.Unwritable:
		return valid(in, own, l, p)
	default:
	}
	switch {
	case userdata.FormOf(own) != userdata.FormScript:
		return settings(l, p)
	case bootWords(own) == nil && (p.Kind == userdata.NothingJoins || p.Kind == userdata.Obscure):
		return joining(in, own)
	}
	if text, ok := rewriteCall(in, own, ""); ok {
		return []string{text}
	}
	return nil
}

// valid returns texts without the setting that p reports. A script keeps the line with the setting, because the line
// may be the call of bootstrap.sh.
func valid(in userdata.Input, own string, l lines, p userdata.Problem) []string {
	if userdata.FormOf(own) == userdata.FormScript && (p.Kind == userdata.SettingUnknown || p.Kind == userdata.SettingInvalid) {
		return withoutGates(l, p)
	}
	return append(settings(l, p), nothing(in)...)
}

// settings returns texts that may fix the line of a setting: with the similar known name, with a bracket or quote at
// its end, or without the line.
func settings(l lines, p userdata.Problem) []string {
	var out []string
	if p.Write != "" && p.At.Column > 0 {
		out = append(out, l.replaced(p.At.Line, func(line string) string { return renamed(line, p.At.Column, p.Write) }))
	}
	for _, end := range []string{"]", `"`, `'`, "}"} {
		out = append(out, l.replaced(p.At.Line, func(line string) string { return line + end }))
	}
	if userdata.FormOf(strings.Join(l, "\n")) == userdata.FormScript {
		return out // a line of a script does more than set a value
	}
	return append(out, l.without(p.At.Line))
}

// nothing returns empty user data as a candidate: for all families but Custom, Joiner's own part suffices to join.
func nothing(in userdata.Input) []string {
	if in.Family == userdata.FamilyCustom {
		return nil
	}
	return []string{""}
}

// joining returns the script with a call of bootstrap.sh at its end. It returns no candidate for other families than
// Custom and for other forms.
func joining(in userdata.Input, own string) []string {
	if in.Cluster == "" || in.Family != userdata.FamilyCustom || userdata.FormOf(own) != userdata.FormScript {
		return nil
	}
	return []string{strings.TrimRight(own, "\n") + "\n" + userdata.BySh + " " + in.Cluster + " " + kubelet.ExtraArgs +
		" '" + kubelet.StartupFlag + "'\n"}
}

// lines are the lines of a text, without line ends.
type lines []string

func linesOf(text string) lines { return strings.Split(text, "\n") }

// replaced returns the text with one line changed; unchanged if it has no such line. number starts at 1.
func (l lines) replaced(number int, change func(string) string) string {
	if number < 1 || number > len(l) {
		return strings.Join(l, "\n")
	}
	out := slices.Clone(l)
	out[number-1] = change(out[number-1])
	return strings.Join(out, "\n")
}

// without returns the text without one line; unchanged if it has no such line. number starts at 1.
func (l lines) without(number int) string {
	if number < 1 || number > len(l) {
		return strings.Join(l, "\n")
	}
	return strings.Join(slices.Delete(slices.Clone(l), number-1, number), "\n")
}

// quoteAt returns the quote at a column of a line; empty if there is none.
func quoteAt(line string, column int) string {
	if column < 1 || column > len(line) || !strings.ContainsAny(line[column-1:column], "'\"`") {
		return ""
	}
	return line[column-1 : column]
}

// renamed returns a line in which word replaces the word that begins at a column.
func renamed(line string, column int, word string) string {
	if column > len(line) {
		return line
	}
	rest := strings.TrimLeft(line[column-1:], userdata.Letters+"0123456789-_")
	return line[:column-1] + word + rest
}

// counterparts are the names of the two architectures in downloads, in pairs.
var counterparts = [][2]string{{"x86_64", "aarch64"}, {"amd64", "arm64"}}

// counterpart returns a line with the name of one architecture replaced by the name of the other.
func counterpart(line string) string {
	for _, pair := range counterparts {
		for i, word := range pair {
			if strings.Contains(line, word) {
				return strings.ReplaceAll(line, word, pair[1-i])
			}
		}
	}
	return line
}

// queryingArch returns a line that queries the architecture of the instance instead of naming it.
func queryingArch(line string) string {
	for i, query := range []string{"$(uname -m)", "$(uname -m | sed s/x86_64/amd64/ | sed s/aarch64/arm64/)"} {
		for _, word := range counterparts[i] {
			if strings.Contains(line, word) {
				return strings.ReplaceAll(line, word, query)
			}
		}
	}
	return line
}

// withoutFlag removes the lines with a flag of the kubelet from a list, as in a NodeConfig.
func withoutFlag(own, name string) string {
	l := slices.DeleteFunc(linesOf(own), func(line string) bool {
		item, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		flag, _, _ := strings.Cut(strings.Trim(item, `"'`), "=")
		return ok && flag == "--"+name
	})
	return strings.Join(l, "\n")
}
