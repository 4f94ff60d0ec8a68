package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/joiner-sh/joiner/internal/cli"
	"github.com/joiner-sh/joiner/internal/config"
)

// offline matches documented commands that need neither a cluster nor AWS. TestDocumentedCommands runs them.
var offline = regexp.MustCompile(`^bin/joiner (plan -f|catalog --region|render) |^joiner plan -f docs/examples/first$|^joiner version$`)

// TestDocumentedCommands: every joiner command in the guides has valid flags, and the offline ones succeed.
func TestDocumentedCommands(t *testing.T) {
	t.Chdir("../..") // paths in guides are relative to the root of the repository
	seen, ran := 0, 0
	for _, page := range guides(t) {
		for _, command := range commandsOf(t, page) {
			program := filepath.Base(command[0])
			args := command[1:]
			if program == "kubectl" && len(args) > 0 && args[0] == "joiner" {
				program, args = "joiner", args[1:]
			}
			if program != "joiner" {
				continue
			}
			seen++
			var out, errs bytes.Buffer
			root := cli.Root("test", cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, commands()...)
			cmd, rest, err := root.Find(args)
			if err != nil || cmd == root {
				t.Errorf("%s: %q is not a joiner command: %v", page, command, err)
				continue
			}
			if cmd.DisableFlagParsing {
				if _, _, err := config.FromProcess(rest, nil); err != nil {
					t.Errorf("%s: %q has an invalid setting: %v", page, command, err)
				}
				continue
			}
			if offline.MatchString(strings.Join(command, " ")) {
				ran++
				if code := cli.Run(t.Context(), root, args); code != cli.ExitOK || out.Len() == 0 {
					t.Errorf("%s: %q: exit status %d, want 0 and some output: %s", page, command, code, errs.String())
				}
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q has an invalid flag: %v", page, command, err)
			}
		}
	}
	if seen < 10 || ran < 5 {
		t.Errorf("the test found %d commands and ran %d, want at least 10 and 5", seen, ran)
	}
}

// guides returns the pages for users.
func guides(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/guides/*.md", "deploy/iam/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pages...)
	}
	return out
}

var shellExample = regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```")

// commandsOf returns the simple commands of a page's shell examples, as words. Variables are not expanded.
func commandsOf(t *testing.T, page string) [][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for _, m := range shellExample.FindAllStringSubmatch(string(text), -1) {
		script, err := syntax.NewParser().Parse(strings.NewReader(m[2]), page)
		if err != nil {
			t.Errorf("%s: an example is not valid shell: %v", page, err)
			continue
		}
		syntax.Walk(script, func(n syntax.Node) bool {
			call, ok := n.(*syntax.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			var words []string
			for _, w := range call.Args {
				words = append(words, withoutQuotes(w))
			}
			out = append(out, words)
			return true
		})
	}
	return out
}

func withoutQuotes(w *syntax.Word) string {
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, w); err != nil {
		return ""
	}
	return strings.NewReplacer(`"`, "", `'`, "").Replace(b.String())
}

// TestDocumentedSettings: each environment variable that guides set is a setting of the controller, AWS or the lab.
func TestDocumentedSettings(t *testing.T) {
	t.Chdir("../..")
	var names []string
	for _, s := range slices.Concat(config.All(), config.Unsupported()) {
		names = append(names, s.Flag, s.Variable)
	}
	variable := regexp.MustCompile("`([A-Z]+(?:_[A-Z]+)+)=")
	for _, page := range guides(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range variable.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(names, m[1]) && !strings.HasPrefix(m[1], "AWS_") && !strings.HasPrefix(m[1], "LAB_") {
				t.Errorf("%s sets %s, want a setting of the controller, AWS or the lab", page, m[1])
			}
		}
	}
}
