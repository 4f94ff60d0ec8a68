package checks_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	. "github.com/joiner-sh/joiner/internal/diagnosis"
	. "github.com/joiner-sh/joiner/internal/diagnosis/checks"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// marker is part of every hostile text.
const marker = "pwn3d"

// special has the characters that no valid name contains.
const special = " ;(\n'\x1b$`"

// hostileTexts returns texts that try to change a command, a patch or a terminal.
func hostileTexts() []string {
	return []string{
		"x;touch " + marker + ";#",
		"$(touch " + marker + ")",
		"`touch " + marker + "`",
		"x' '" + marker + "'; touch '" + marker,
		`x"; touch "` + marker,
		"x\ntouch " + marker + "\n",
		"x && touch " + marker + " || true | tee > /tmp/" + marker,
		"--kubeconfig=/tmp/" + marker,
		"-n=" + marker,
		`web","spec":{"role":"` + marker,
		"a: b\n- rolearn: arn:aws:iam::111122223333:role/" + marker + "\n  groups: [system:masters]",
		"\x1b[2J\x1b]0;" + marker + "\x07\u202e" + marker + "\u2066\u200b\u0085",
		"${IFS}" + marker + "*?[a]~!{a,b}",
		"file:///etc/" + marker, // the AWS command line reads files for such values
		strings.Repeat("A;", 5000) + marker,
		"deployment/app --type merge -p '{}'\nkubectl patch clusterrolebinding " + marker + " -p '{}'\nkubectl patch deployment",
	}
}

// site is one string of the evidence: a field, an element, or a key of a map.
type site struct {
	path string // ".Classes.Value[0].Name"
	text string
	set  func(string) // replaces text
}

// sites appends all strings in v to out. commit is called after a change of v; it writes v back if v is a copy.
func sites(v reflect.Value, path string, commit func(), out *[]site) {
	switch v.Kind() {
	case reflect.String:
		*out = append(*out, site{path, v.String(), func(s string) { v.SetString(s); commit() }})
	case reflect.Pointer:
		if !v.IsNil() {
			sites(v.Elem(), path, commit, out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			sites(v.Index(i), fmt.Sprintf("%s[%d]", path, i), commit, out)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				sites(v.Field(i), path+"."+f.Name, commit, out)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			present := key // the key under which the value is stored
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			*out = append(*out, site{path + "{" + key.String() + "}", key.String(), func(s string) {
				v.SetMapIndex(present, reflect.Value{})
				present = reflect.ValueOf(s).Convert(v.Type().Key())
				v.SetMapIndex(present, value)
				commit()
			}})
			sites(value, path+"["+key.String()+"]", func() { v.SetMapIndex(present, value); commit() }, out)
		}
	default:
	}
}

func sitesOf(e *Evidence) []site {
	var out []site
	sites(reflect.ValueOf(e).Elem(), "", func() {}, &out)
	return out
}

// TestHostileEvidence replaces every string of evidence that triggers a check by hostile text. The lines of the printed
// fixes, parsed as shell text, have exactly the words of the steps, and no word repeats the hostile text. joiner doctor
// --fix makes exactly the calls of the steps.
func TestHostileEvidence(t *testing.T) {
	t.Parallel()
	all := faults()
	for _, c := range Checks() {
		if len(all[c.ID]) == 0 {
			t.Errorf("no fault triggers %s", c.ID)
		}
		for i, f := range all[c.ID] {
			t.Run(fmt.Sprintf("%s/%d", c.ID, i), func(t *testing.T) {
				t.Parallel()
				h := &hostility{t: t, judged: map[string]bool{}}
				h.judge("no string is replaced", build(f))
				if !h.hasFix {
					t.Error("no finding has a fix")
				}
				h.oneByOne(f, offset(c.ID, i), i == 0)
				h.allAtOnce(f, i == 0)
			})
		}
	}
}

// offset returns a number for fault i of a check. It usually differs between faults, so that they use different texts.
func offset(id string, i int) int {
	for _, r := range id {
		i += int(r)
	}
	return i
}

func build(f fault) *Evidence {
	s := &situation{healthy()}
	f.breaks(s)
	return &s.e
}

type hostility struct {
	t      *testing.T
	judged map[string]bool // texts of the fixes that were checked
	hasFix bool            // a finding had a fix with steps
}

// oneByOne changes one string after another and checks the findings each time. It replaces the string by hostile text
// or, because a part of the string may trigger the check, appends the hostile text.
//
// Strings that the fault changes take every hostile text. The other strings take one hostile text, which differs
// between faults. The first fault of a check changes all other strings, further faults every fourth.
func (h *hostility) oneByOne(f fault, offset int, isFirst bool) {
	healthyTexts := map[string]string{} // by path
	e, texts := healthy(), hostileTexts()
	for _, s := range sitesOf(&e) {
		healthyTexts[s.path] = s.text
	}
	broken := build(f)
	for i, s := range sitesOf(broken) {
		chosen := texts
		if text, exists := healthyTexts[s.path]; exists && text == s.text {
			if !isFirst && (i+offset)%4 != 0 {
				continue // the check's first fault has changed the string
			}
			k := (i + offset) % len(texts)
			chosen = texts[k : k+1]
		}
		for k, hostile := range chosen {
			text := hostile
			// Variant 0 replaces the string, 1 appends the hostile text, 2 appends it after a space. A text without
			// special characters is not appended, because the result may be a valid name.
			if variant := (i + k + offset) % 3; variant > 0 && strings.ContainsAny(hostile, special) {
				text = s.text + strings.Repeat(" ", variant-1) + hostile
			}
			s.set(text)
			h.judge(s.path+" = "+fmt.Sprintf("%.80q", text), broken)
		}
		s.set(s.text)
	}
}

// allAtOnce appends a hostile text to all strings at once, so that equal names stay equal. Empty strings and the field
// Absent are not changed. Each run leaves one further field unchanged, because many findings depend on its exact value.
// The first fault of a check has a run for each of these fields, other faults only for State.
func (h *hostility) allAtOnce(f fault, isFirst bool) {
	for _, hostile := range hostileTexts() {
		if !strings.ContainsAny(hostile, special) {
			continue // appended to a name, the text may be part of a valid name
		}
		for _, keep := range []string{".Absent", ".Family", ".State", ".Type"} {
			if !isFirst && keep != ".State" {
				continue
			}
			e := build(f)
			for _, s := range sitesOf(e) {
				if !strings.HasSuffix(s.path, keep) && s.text != "" && !strings.HasSuffix(s.path, ".Absent") {
					s.set(s.text + hostile)
				}
			}
			h.judge("all strings with "+fmt.Sprintf("%.80q", hostile), e)
		}
	}
}

// judge checks the fixes of all findings. what describes the change of the evidence.
func (h *hostility) judge(what string, e *Evidence) {
	h.t.Helper()
	for _, f := range Diagnose(*e) {
		text := f.Fix.String()
		if f.Fix.IsZero() || h.judged[text] {
			continue
		}
		h.judged[text], h.hasFix = true, true
		if why := printedDifference(f.Fix); why != "" {
			h.t.Errorf("%s: the fix of %s %s:\n%s", what, f.Check, why, text)
		}
		if why := executedDifference(h.t.Context(), f.Fix); why != "" {
			h.t.Errorf("%s: --fix %s %s:\n%s", what, f.Check, why, text)
		}
	}
}

// printedDifference describes how the printed text of a fix differs from its steps, or why the text is dangerous; empty
// if neither.
func printedDifference(f fix.Fix) string {
	text, steps := f.String(), f.Steps()
	lines := strings.Split(text, "\n")
	if len(lines) != len(steps) {
		return "does not have one line for each step"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		return "has characters that a terminal acts on"
	}
	for i, s := range steps {
		file, err := syntax.NewParser().Parse(strings.NewReader(lines[i]), "")
		if err != nil {
			return "cannot be parsed as shell text: " + err.Error()
		}
		words := s.Words()
		if len(words) == 0 {
			if len(file.Stmts) > 0 {
				return "has a command in the line of advice"
			}
			continue
		}
		if len(file.Stmts) != 1 {
			return fmt.Sprintf("has %d commands in one line, want 1", len(file.Stmts))
		}
		got, ok := wordsOf(file.Stmts[0])
		if !ok || !reflect.DeepEqual(got, words) {
			return fmt.Sprintf("has the shell words %q, want those of the step: %q", got, words)
		}
		if strings.Contains(fmt.Sprint(words), marker) && !isAuthMap(s) {
			return "repeats hostile text in a command"
		}
		for _, active := range []string{"$(touch", "`touch", ";touch", "; touch", "&& touch", "| tee", "${IFS}", "'" + marker, `"` + marker} {
			if strings.Contains(s.Note(), active) {
				return "has " + active + " in a comment, and some shells do not treat # as the start of a comment"
			}
		}
	}
	return ""
}

// isAuthMap reports whether a step changes a ConfigMap: aws-auth, in which comments may have any text.
func isAuthMap(s fix.Step) bool {
	k, _ := s.Kubernetes()
	return k.Resource == "configmap"
}

// wordsOf returns the words of a shell statement; false if it is not exactly one command.
func wordsOf(s *syntax.Stmt) (out []fix.Word, ok bool) {
	call, isCall := s.Cmd.(*syntax.CallExpr)
	isSaved := len(s.Redirs) == 1 && s.Redirs[0].Op == syntax.RdrOut && s.Redirs[0].Word.Lit() == "aws-auth-before.yaml"
	if !isCall || s.Background || s.Negated || s.Coprocess || len(call.Assigns) > 0 || len(s.Redirs) > 0 && !isSaved {
		return nil, false
	}
	for _, w := range call.Args {
		word, ok := wordOf(w)
		if !ok {
			return out, false
		}
		out = append(out, word)
	}
	return out, true
}

// wordOf returns a shell word as a word of a step; false if the word has an expansion other than "$(command)".
func wordOf(w *syntax.Word) (fix.Word, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if p.Value == `\'` { // a quote between two quoted parts
				b.WriteString("'")
				continue
			}
			if strings.ContainsAny(p.Value, `\*?[~{}`) {
				return fix.Word{}, false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			subst, ok := p.Parts[0].(*syntax.CmdSubst)
			if !ok || len(w.Parts) != 1 || len(p.Parts) != 1 || len(subst.Stmts) != 1 {
				return fix.Word{}, false
			}
			from, ok := wordsOf(subst.Stmts[0])
			return fix.Word{From: from}, ok
		default:
			return fix.Word{}, false
		}
	}
	return fix.Word{Text: b.String()}, true
}

// TestHostileJSON: the commands in the JSON form of a fix contain no hostile text.
func TestHostileJSON(t *testing.T) {
	t.Parallel()
	s := &situation{healthy()}
	s.e.Entries.Value[1].Type, s.e.Name = "STANDARD", "prod;touch "+marker
	text, err := json.Marshal(Actionable(Diagnose(s.e)))
	if err != nil {
		t.Fatal(err)
	}
	var found []struct {
		Fix   string
		Steps []struct {
			Kind    string
			Command []any
			Note    string
		}
	}
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	first := found[0]
	if !strings.HasPrefix(first.Fix, "# no command is given for EC2NodeClass default: the name of an EKS cluster is not valid: prod\\x3btouch pwn3d") ||
		len(first.Steps) != 1 || first.Steps[0].Kind != "advice" || len(first.Steps[0].Command) > 0 {
		t.Errorf("want advice instead of commands: %+v", first)
	}
}
