package lab_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// guideStep is a command of a page.
type guideStep struct {
	line    int    // number of the command's first line in the page
	section string // nearest heading above the command
	text    string // unchanged text
}

// guidePrograms are the programs of commands in prose: a code span is a command if it begins with one of these programs
// and has arguments.
var guidePrograms = []string{"aws", "bin/joiner", "bin/lab", "go", "helm", "joiner", "kubectl", "make", "terraform"}

// otherFences has the reason why the code blocks of a language are not run, by language.
var otherFences = map[string]string{
	"":    "a drawing, or the output of a command",
	"hcl": "a call of the Terraform module: hack/deploy plans the module",
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// stepsOf returns all commands of a page in their order, from shell blocks and from prose. A block that is neither a
// shell block nor in otherFences is an error.
func stepsOf(t *testing.T, page string) []guideStep {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []guideStep
	section, fence, block, begin := "", "", "", 0 // begin: number of the block's first line
	inside := false
	for i, line := range strings.Split(string(text), "\n") {
		language, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && !inside:
			inside, fence, block, begin = true, language, "", i+2
			if _, ok := otherFences[fence]; fence != "sh" && !ok {
				t.Errorf("%s:%d: a block of language %q, want sh or a language in otherFences", page, i+1, fence)
			}
		case isFence:
			if fence == "sh" {
				out = append(out, statementsOf(t, page, block, guideStep{line: begin, section: section})...)
			}
			inside = false
		case inside:
			block += line + "\n"
		case strings.HasPrefix(line, "#"):
			section = strings.TrimSpace(strings.TrimLeft(line, "#"))
		default:
			out = append(out, spansOf(t, page, line, guideStep{line: i + 1, section: section})...)
		}
	}
	return out
}

// statementsOf returns the commands of a shell block. first has the section of the block and the number of its first
// line.
func statementsOf(t *testing.T, page, block string, first guideStep) []guideStep {
	t.Helper()
	script, err := syntax.NewParser().Parse(strings.NewReader(block), page)
	if err != nil {
		t.Errorf("%s:%d: the block is not a valid shell script: %v", page, first.line, err)
		return nil
	}
	var out []guideStep
	for _, s := range script.Stmts {
		step := first
		step.line += int(s.Pos().Line()) - 1
		step.text = block[s.Pos().Offset():s.End().Offset()]
		out = append(out, step)
	}
	return out
}

// spansOf returns the commands in a line of prose. step has the line's number and section.
func spansOf(t *testing.T, page, line string, step guideStep) []guideStep {
	t.Helper()
	if strings.Count(line, "`")%2 != 0 {
		t.Errorf("%s:%d: a code span continues on another line; keep commands on one line", page, step.line)
	}
	var out []guideStep
	for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
		if words := strings.Fields(m[1]); len(words) > 1 && slices.Contains(guidePrograms, words[0]) {
			step.text = m[1]
			out = append(out, step)
		}
	}
	return out
}

// TestStepsOfPages checks that stepsOf finds the commands in prose, in shell blocks and in tables.
func TestStepsOfPages(t *testing.T) {
	t.Parallel()
	page := t.TempDir() + "/page.md"
	text := "# A\n\n`kubectl get nodes` or `kubectl`\n\n## B\n\n```sh\na=1 b \\\n  c   # why\nfor x in 1 2; do\n  echo $x\ndone\n```\n\n" +
		"```hcl\nx = 1\n```\n| `make a` | `b` |\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []guideStep{
		{3, "A", "kubectl get nodes"}, {8, "B", "a=1 b \\\n  c"}, {10, "B", "for x in 1 2; do\n  echo $x\ndone"}, {18, "B", "make a"},
	}
	if got := stepsOf(t, page); !slices.Equal(got, want) {
		t.Errorf("steps are %+v, want %+v", got, want)
	}
}
