package repocheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// bannedWords has the words for which Kubernetes, EC2 or Karpenter have a standard term, and that term. The patterns
// ignore case.
var bannedWords = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{wordPattern(`ways? of paying`), "capacity type"},
	{wordPattern(`wish(es|ed)?|would rather`), "preference, prefers"},
	{wordPattern(`machines?`), "instance; planned NodeClaim"},
	{wordPattern(`buy(s|ing)?|bought|sells?|selling|sold|giv(e|es|en|ing) back|gave back`), "launch, offer, terminate"},
	{wordPattern(`lets? go|let go of|asked to leave|asks? to leave|sent away`), "evict, drain"},
	{wordPattern(`by choice`), "voluntary disruption"},
	{wordPattern(`told|tells?|tell of|says? so`), "reports, emits an event, logs, sets the condition"},
	{wordPattern(`heed(s|ed|ing)?|unheeded`), "honor, process; ignored"},
	{wordPattern(`mend(s|ed|ing)?|put right`), "fix, fixed"},
	{wordPattern(`reckon(s|ed|ing)?`), "compute, count, estimate"},
	{wordPattern(`(a|one|each|every|first|second|next|last|two|another) looks?|look(s|ed|ing)? (at )?again`), "scan, re-check, reconcile"},
	{wordPattern(`begun|led on|led to its end|(comes?|came|coming) to nothing`), "started, continued, completed, aborted"},
	{wordPattern(`at rest|calm`), "converged, idle"},
	{wordPattern(`deals? out|dealt out|dealing out`), "schedules"},
	{wordPattern(`nobody|somebody|whoever|everybody`), "the pod, the node, the user: by its name"},
	{wordPattern(`(pods?|nodes?|claims?|instances?|NodeClaims?) who`), "the pod that, the node that"},
	{wordPattern(`namesakes?`), "cluster with the same name"},
	{wordPattern(`doors?`), "client"},
	{wordPattern(`so many|as ever|for good|at last|yet to come`), "a number, or nothing"},
	{wordPattern(`guests?`), "DaemonSet pod"},
	{wordPattern(`(a|an|the|this|each|its|interruption|spot) notices?|notices of`), "interruption message"},
	{wordPattern(`rest(s|ed|ing)? on`), "is based on"},
}

// allowedTerms matches terms of the field that contain a banned word.
var allowedTerms = wordPattern(`machine images?|machine-readable|virtual machines?|state machines?|machine learning|Amazon Machine Images?|spot instance interruption notices?`)

// maxSentenceWords is how many words a sentence of a document or a message may have.
const maxSentenceWords = 35

// wordPattern returns a pattern that matches the alternatives as whole words, in any case.
func wordPattern(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + alternatives + `)\b`)
}

type finding struct {
	file string
	line int
	text string
}

// TestLanguage checks that documents, messages and comments have no banned words. It also checks that documents and
// messages have no long sentences. This file is exempt.
//
// It reads Markdown files without their code, comments of Go files, string literals of Go files other than tests, and
// the descriptions of the chart's values.
func TestLanguage(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("no git checkout: %v", err)
	}
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		for _, f := range findingsIn(t, file) {
			t.Errorf("%s:%d: %s", f.file, f.line, f.text)
		}
	}
}

// findingsIn returns the findings in a file; none if it has no prose.
func findingsIn(t *testing.T, file string) []finding {
	t.Helper()
	isGo := strings.HasSuffix(file, ".go") && !strings.Contains(file, "zz_generated") && file != "internal/repocheck/language_test.go"
	isMarkdown := strings.HasSuffix(file, ".md") && !strings.Contains(file, "/testdata/")
	isValues := strings.HasPrefix(file, "deploy/charts/") && !strings.Contains(file, "/testdata/") &&
		(strings.HasSuffix(file, "values.yaml") || strings.HasSuffix(file, "values.schema.json") || strings.HasSuffix(file, "NOTES.txt"))
	if !isGo && !isMarkdown && !isValues {
		return nil
	}
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil // deleted, and not yet committed
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []finding
	// isLimited: the length of the sentences is limited.
	check := func(line int, prose string, isLimited bool) {
		for _, b := range bannedWords {
			for _, found := range b.pattern.FindAllString(allowedTerms.ReplaceAllString(prose, ""), -1) {
				out = append(out, finding{file, line, fmt.Sprintf("%q: write %s", found, b.instead)})
			}
		}
		if !isLimited {
			return
		}
		for _, sentence := range sentences(prose) {
			if n := len(strings.Fields(sentence)); n > maxSentenceWords {
				out = append(out, finding{file, line, fmt.Sprintf("a sentence of %d words: %.60s…", n, strings.TrimSpace(sentence))})
			}
		}
	}
	switch {
	case isGo:
		visitGoProse(t, file, text, check)
	case isMarkdown:
		visitMarkdownProse(string(text), check)
	default:
		for i, line := range strings.Split(string(text), "\n") {
			check(i+1, line, false)
		}
	}
	return out
}

// visitGoProse visits comments and, outside of tests, string literals of two words or more.
func visitGoProse(t *testing.T, file string, text []byte, check func(line int, prose string, isLimited bool)) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		if _, ok := err.(scanner.ErrorList); ok { //nolint:errorlint // the parser documents this type
			// The compiler reports it.
			return
		}
		t.Fatal(err)
	}
	for _, group := range f.Comments {
		check(fset.Position(group.Pos()).Line, withoutCode(indentedCode.ReplaceAllString(group.Text(), "")), false)
	}
	if strings.HasSuffix(file, "_test.go") {
		return
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if _, isImport := n.(*ast.ImportSpec); isImport {
			return false
		}
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err == nil && len(strings.Fields(value)) > 1 {
			check(fset.Position(literal.Pos()).Line, withoutCode(value), true)
		}
		return true
	})
}

// visitMarkdownProse visits paragraphs, list items, headings and cells of tables, without code.
func visitMarkdownProse(text string, check func(line int, prose string, isLimited bool)) {
	isCode, paragraph, begin := false, "", 0 // begin is the number of the paragraph's first line
	flush := func() {
		if paragraph != "" {
			check(begin, withoutCode(paragraph), true)
		}
		paragraph = ""
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			flush()
			isCode = !isCode
			continue
		}
		if isCode {
			continue
		}
		switch {
		case strings.HasPrefix(trimmed, "|"):
			flush()
			for cell := range strings.SplitSeq(trimmed, "|") {
				check(i+1, withoutCode(cell), true)
			}
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || isListItem(trimmed):
			flush()
			paragraph, begin = trimmed, i+1
		default:
			if paragraph == "" {
				begin = i + 1
			}
			paragraph += " " + trimmed
		}
	}
	flush()
}

func isListItem(line string) bool {
	number, _, _ := strings.Cut(line, ". ")
	_, err := strconv.Atoi(number)
	return strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "- ") || err == nil
}

var (
	inlineCode   = regexp.MustCompile("`[^`]*`")
	indentedCode = regexp.MustCompile(`(?m)^\t.*$`) // a code block of a Go comment
	linkTarget   = regexp.MustCompile(`\]\([^)]*\)`)
	sentenceEnd  = regexp.MustCompile(`[.!?:;]["')*]*(\s+|$)|\n\n+|\n\s*[*-] `)
)

// withoutCode replaces code and removes the targets of links, because names and commands are not prose.
func withoutCode(text string) string {
	return linkTarget.ReplaceAllString(inlineCode.ReplaceAllString(text, "CODE"), "]")
}

// sentences splits prose at full stops, colons, semicolons, blank lines and list items.
func sentences(prose string) []string { return sentenceEnd.Split(prose, -1) }

// TestLanguageFinds: banned words and long sentences are found in paragraphs and tables, and code is ignored.
func TestLanguageFinds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", maxSentenceWords+1)
	for text, want := range map[string]int{
		"Nobody is told.":                   2,
		"`nobody` is fine":                  0,
		"The machine image is missing.":     0,
		"A machine is bought.":              2,
		long + ".":                          1,
		strings.Repeat("word ", 20) + ".\n": 0,
		"| " + long + " | x |":              1,
		"```\nnobody\n```":                  0,
	} {
		got := 0
		visitMarkdownProse(text, func(_ int, prose string, _ bool) {
			for _, b := range bannedWords {
				got += len(b.pattern.FindAllString(allowedTerms.ReplaceAllString(prose, ""), -1))
			}
			for _, sentence := range sentences(prose) {
				if len(strings.Fields(sentence)) > maxSentenceWords {
					got++
				}
			}
		})
		if got != want {
			t.Errorf("%.40q: %d findings, want %d", text, got, want)
		}
	}
}
