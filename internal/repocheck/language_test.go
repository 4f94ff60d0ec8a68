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

// banned has the words that have a standard term in Kubernetes, EC2 or Karpenter, and that term. The pattern is matched with any case.
var banned = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{words(`ways? of paying`), "capacity type"},
	{words(`wish(es|ed)?|would rather`), "preference, prefers"},
	{words(`machines?`), "instance; planned NodeClaim"},
	{words(`buy(s|ing)?|bought|sells?|selling|sold|giv(e|es|en|ing) back|gave back`), "launch, offer, terminate"},
	{words(`lets? go|let go of|asked to leave|asks? to leave|sent away`), "evict, drain"},
	{words(`by choice`), "voluntary disruption"},
	{words(`told|tells?|tell of|says? so`), "reports, emits an event, logs, sets the condition"},
	{words(`heed(s|ed|ing)?|unheeded`), "honor, process; ignored"},
	{words(`mend(s|ed|ing)?|put right`), "fix, fixed"},
	{words(`reckon(s|ed|ing)?`), "compute, count, estimate"},
	{words(`(a|one|each|every|first|second|next|last|two|another) looks?|look(s|ed|ing)? (at )?again`), "scan, re-check, reconcile"},
	{words(`begun|led on|led to its end|(comes?|came|coming) to nothing`), "started, continued, completed, aborted"},
	{words(`at rest|calm`), "converged, idle"},
	{words(`deals? out|dealt out|dealing out`), "schedules"},
	{words(`nobody|somebody|whoever|everybody`), "the pod, the node, the user: by its name"},
	{words(`(pods?|nodes?|claims?|instances?|NodeClaims?) who`), "the pod that, the node that"},
	{words(`namesakes?`), "cluster with the same name"},
	{words(`doors?`), "client"},
	{words(`so many|as ever|for good|at last|yet to come`), "a number, or nothing"},
	{words(`guests?`), "DaemonSet pod"},
	{words(`(a|an|the|this|each|its|interruption|spot) notices?|notices of`), "interruption message"},
	{words(`rest(s|ed|ing)? on`), "is based on"},
}

// allowed are terms of the field that have a banned word in them.
var allowed = words(`machine images?|machine-readable|virtual machines?|state machines?|machine learning|Amazon Machine Images?|spot instance interruption notices?`)

// longestSentence is how many words a sentence of a document or a message may have.
const longestSentence = 35

func words(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + alternatives + `)\b`)
}

// complaint is one finding: a banned word or a long sentence.
type complaint struct {
	file string
	line int
	text string
}

// TestLanguage holds documents, messages and comments to plain English: standard terms, and sentences that can be read
// once. No file is exempt.
//
// It reads Markdown and comments of Go files without code, texts of Go files that are not tests, and the descriptions
// of the chart's values.
func TestLanguage(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("no git checkout: %v", err)
	}
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		for _, c := range complaintsAbout(t, file) {
			t.Errorf("%s:%d: %s", c.file, c.line, c.text)
		}
	}
}

func complaintsAbout(t *testing.T, file string) []complaint {
	t.Helper()
	isGo := strings.HasSuffix(file, ".go") && !strings.Contains(file, "zz_generated") && file != "internal/repocheck/language_test.go"
	isText := strings.HasSuffix(file, ".md") && !strings.Contains(file, "/testdata/")
	isValues := strings.HasPrefix(file, "deploy/charts/") && !strings.Contains(file, "/testdata/") &&
		(strings.HasSuffix(file, "values.yaml") || strings.HasSuffix(file, "values.schema.json") || strings.HasSuffix(file, "NOTES.txt"))
	if !isGo && !isText && !isValues {
		return nil
	}
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil // deleted, and not yet committed
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []complaint
	check := func(line int, prose string, isLimited bool) {
		for _, b := range banned {
			for _, found := range b.pattern.FindAllString(allowed.ReplaceAllString(prose, ""), -1) {
				out = append(out, complaint{file, line, fmt.Sprintf("%q: write %s", found, b.instead)})
			}
		}
		if !isLimited {
			return
		}
		for _, sentence := range sentences(prose) {
			if n := len(strings.Fields(sentence)); n > longestSentence {
				out = append(out, complaint{file, line, fmt.Sprintf("a sentence of %d words: %.60s…", n, strings.TrimSpace(sentence))})
			}
		}
	}
	switch {
	case isGo:
		goProse(t, file, text, check)
	case isText:
		markdownProse(string(text), check)
	default:
		for i, line := range strings.Split(string(text), "\n") {
			check(i+1, line, false)
		}
	}
	return out
}

// goProse visits comments and, outside of tests, texts of two words or more.
func goProse(t *testing.T, file string, text []byte, check func(line int, prose string, isLimited bool)) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		if _, ok := err.(scanner.ErrorList); ok { //nolint:errorlint // the parser documents this type
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

// markdownProse visits paragraphs, list items, headings and cells of tables, without code.
func markdownProse(text string, check func(line int, prose string, isLimited bool)) {
	isCode, paragraph, begin := false, "", 0
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
	sentenceAt   = regexp.MustCompile(`[.!?:;]["')*]*(\s+|$)|\n\n+|\n\s*[*-] `)
)

// withoutCode replaces code and the targets of links, so that names and commands are no prose.
func withoutCode(text string) string {
	return linkTarget.ReplaceAllString(inlineCode.ReplaceAllString(text, "CODE"), "]")
}

// sentences splits prose at full stops, colons, semicolons, blank lines and list items.
func sentences(prose string) []string { return sentenceAt.Split(prose, -1) }

// TestLanguageFinds: banned words and long sentences are found in each kind of text, and code is not read.
func TestLanguageFinds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", longestSentence+1)
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
		markdownProse(text, func(_ int, prose string, _ bool) {
			for _, b := range banned {
				got += len(b.pattern.FindAllString(allowed.ReplaceAllString(prose, ""), -1))
			}
			for _, sentence := range sentences(prose) {
				if len(strings.Fields(sentence)) > longestSentence {
					got++
				}
			}
		})
		if got != want {
			t.Errorf("%.40q: %d findings, want %d", text, got, want)
		}
	}
}
