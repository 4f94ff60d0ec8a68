package reading

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// Correction is a change of the user data that an instance's console output suggests.
type Correction struct {
	Flag            string // flag of the kubelet to remove, without dashes; empty: none
	Program         string // program whose calls are replaced by true; empty: none
	IgnoreFailureOf string // program whose failure must not end the script; empty: none
	MaxPods         int    // max-pods to set if the image does not know the instance type; 0: not set
}

// Correct fixes the problems of the user's own user data, in.Own, that can be fixed without a decision of the user. If
// checks are given, Correct fixes only problems whose Problem.Check is one of them. read returns the problems of a
// candidate text. Each change reduces the total severity of the problems. Correct returns the text unchanged if it can
// fix nothing.
func Correct(in userdata.Input, read func(own string) []userdata.Problem, checks ...string) string {
	const maxChanges = 40 // limits the time: each step reads several candidates
	own := in.Own
	problems := read(own)
	for range maxChanges {
		changed, remaining, ok := step(in, own, problems, read, checks)
		if !ok {
			break
		}
		own, problems = changed, remaining
	}
	return own
}

// step makes one change to the text own, which has the problems. It returns the changed text and its problems; ok is
// false if no change reduces the total severity.
func step(in userdata.Input, own string, problems []userdata.Problem, read func(string) []userdata.Problem,
	checks []string) (changed string, remaining []userdata.Problem, ok bool) {
	for _, p := range problems {
		isExcluded := len(checks) > 0 && !slices.Contains(checks, p.Check())
		if isExcluded || p.At.Part > 0 || p.At.Ours { // a position in a MIME part is not one in own
			continue
		}
		for _, text := range candidates(in, own, p) {
			if text == own {
				continue
			}
			if after := read(text); weight(after) < weight(problems) {
				return text, after, true
			}
		}
	}
	return own, problems, false
}

// ApplyCorrection applies the correction to the user's own user data. It returns the text unchanged if there is nothing
// to change.
func ApplyCorrection(in userdata.Input, c Correction) string {
	own := in.Own
	if c.Flag != "" {
		if text, ok := rewriteCall(in, own, strings.TrimLeft(c.Flag, "-")); ok {
			own = text
		} else {
			own = removeFlag(own, strings.TrimLeft(c.Flag, "-"))
		}
	}
	if c.MaxPods > 0 {
		in.Own = own
		own = setMaxPods(in, c.MaxPods)
	}
	if c.Program != "" {
		own = replaceCalls(own, c.Program, func(string) string { return "true" })
	}
	if c.IgnoreFailureOf != "" {
		own = replaceCalls(own, c.IgnoreFailureOf, func(call string) string { return call + " || true" })
	}
	return own
}

// weight returns the total severity of problems. A problem that is Certain weighs 9, Likely 3 and Possible 1. The harm
// NeverJoins multiplies this by 100, so that a change may cause some lesser problems if it lets the instance join.
func weight(all []userdata.Problem) int {
	sum := 0
	for _, p := range all {
		severity := map[userdata.Certainty]int{userdata.Certain: 9, userdata.Likely: 3, userdata.Possible: 1}[p.Certainty]
		if p.Harm == userdata.NeverJoins {
			severity *= 100
		}
		sum += severity
	}
	return sum
}

// candidates returns changed texts that may fix a problem, the smallest change first. The caller must read each of them
// to check whether the problem is fixed.
func candidates(in userdata.Input, own string, p userdata.Problem) []string {
	l := linesOf(own)
	switch p.Kind {
	case userdata.TooLong:
		return []string{shorten(own)}
	case userdata.ProxyForAPIServer:
		return []string{l.replaceLine(p.At.Line, func(line string) string { return kubelet.AddToNoProxy(line, p.Write) })}
	case userdata.OtherArch:
		return []string{l.replaceLine(p.At.Line, swapArch), l.replaceLine(p.At.Line, queryArch)}
	case userdata.UnknownPart:
		if in.Family != userdata.FamilyCustom || parseScript(own) == nil {
			return emptyCandidate(in)
		}
		return []string{"#!/bin/bash\n" + own}
	case userdata.ScriptBroken:
		return []string{
			strings.ReplaceAll(own, "\r\n", "\n"), "#!/bin/bash\n" + own,
			l.replaceLine(p.At.Line, func(line string) string { return line + quoteAt(line, p.At.Column) }),
		}
	case userdata.NeverReached:
		return []string{l.replaceLine(p.At.Line, func(string) string { return "true" })}
	case userdata.SettingUnknown, userdata.SettingInvalid, userdata.NodeConfigBroken, userdata.BadMIME,
		userdata.OtherFamily, userdata.Unwritable:
		return settingCandidates(in, own, l, p)
	default:
	}
	switch {
	case userdata.FormOf(own) != userdata.FormScript:
		return lineCandidates(l, p)
	case bootWords(own) == nil && (p.Kind == userdata.NothingJoins || p.Kind == userdata.Undetermined):
		return joiningCandidate(in, own)
	}
	if text, ok := rewriteCall(in, own, ""); ok {
		return []string{text}
	}
	return nil
}

// settingCandidates returns texts in which the setting that p reports is corrected or removed, and empty user data. A
// script keeps the line with the setting, because the line may be the call of bootstrap.sh.
func settingCandidates(in userdata.Input, own string, l lines, p userdata.Problem) []string {
	if userdata.FormOf(own) == userdata.FormScript && (p.Kind == userdata.SettingUnknown || p.Kind == userdata.SettingInvalid) {
		return gateCandidates(l, p)
	}
	return append(lineCandidates(l, p), emptyCandidate(in)...)
}

// lineCandidates returns texts that may fix the line of a setting: with the similar known name, with a bracket or quote
// at its end, or without the line.
func lineCandidates(l lines, p userdata.Problem) []string {
	var out []string
	if p.Write != "" && p.At.Column > 0 {
		out = append(out, l.replaceLine(p.At.Line, func(line string) string { return replaceWord(line, p.At.Column, p.Write) }))
	}
	for _, end := range []string{"]", `"`, `'`, "}"} {
		out = append(out, l.replaceLine(p.At.Line, func(line string) string { return line + end }))
	}
	if userdata.FormOf(strings.Join(l, "\n")) == userdata.FormScript {
		return out // a line of a script does more than set a value
	}
	return append(out, l.removeLine(p.At.Line))
}

// emptyCandidate returns empty user data as a candidate, because Joiner's own part suffices to join. For the family
// Custom, where Joiner has no part, it returns no candidate.
func emptyCandidate(in userdata.Input) []string {
	if in.Family == userdata.FamilyCustom {
		return nil
	}
	return []string{""}
}

// joiningCandidate returns the script with a call of bootstrap.sh at its end. It returns no candidate for families
// other than Custom, and for forms other than a script.
func joiningCandidate(in userdata.Input, own string) []string {
	if in.Cluster == "" || in.Family != userdata.FamilyCustom || userdata.FormOf(own) != userdata.FormScript {
		return nil
	}
	return []string{strings.TrimRight(own, "\n") + "\n" + userdata.BySh + " " + in.Cluster + " " + kubelet.ExtraArgs +
		" '" + kubelet.StartupFlag + "'\n"}
}

// lines are the lines of a text, without line ends.
type lines []string

func linesOf(text string) lines { return strings.Split(text, "\n") }

// replaceLine returns the text with one line changed; unchanged if it has no line with this number. number starts at 1.
func (l lines) replaceLine(number int, change func(string) string) string {
	if number < 1 || number > len(l) {
		return strings.Join(l, "\n")
	}
	out := slices.Clone(l)
	out[number-1] = change(out[number-1])
	return strings.Join(out, "\n")
}

// removeLine returns the text without one line. number is as for replaceLine.
func (l lines) removeLine(number int) string {
	if number < 1 || number > len(l) {
		return strings.Join(l, "\n")
	}
	return strings.Join(slices.Delete(slices.Clone(l), number-1, number), "\n")
}

func quoteAt(line string, column int) string {
	if column < 1 || column > len(line) || !strings.ContainsAny(line[column-1:column], "'\"`") {
		return ""
	}
	return line[column-1 : column]
}

func replaceWord(line string, column int, word string) string {
	if column > len(line) {
		return line
	}
	rest := strings.TrimLeft(line[column-1:], userdata.Letters+"0123456789-_")
	return line[:column-1] + word + rest
}

// archNames are the names of the two architectures in downloads, in pairs.
var archNames = [][2]string{{"x86_64", "aarch64"}, {"amd64", "arm64"}}

// swapArch returns a line with the name of one architecture replaced by the name of the other.
func swapArch(line string) string {
	for _, pair := range archNames {
		for i, word := range pair {
			if strings.Contains(line, word) {
				return strings.ReplaceAll(line, word, pair[1-i])
			}
		}
	}
	return line
}

// queryArch returns a line that queries the architecture of the instance, in the style of the name that it replaces.
func queryArch(line string) string {
	for i, query := range []string{"$(uname -m)", "$(uname -m | sed s/x86_64/amd64/ | sed s/aarch64/arm64/)"} {
		for _, word := range archNames[i] {
			if strings.Contains(line, word) {
				return strings.ReplaceAll(line, word, query)
			}
		}
	}
	return line
}

// removeFlag removes the lines with a flag of the kubelet from the lists of a NodeConfig.
func removeFlag(own, name string) string {
	l := slices.DeleteFunc(linesOf(own), func(line string) bool {
		item, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		flag, _, _ := strings.Cut(strings.Trim(item, `"'`), "=")
		return ok && flag == "--"+name
	})
	return strings.Join(l, "\n")
}
