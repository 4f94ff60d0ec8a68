package repocheck

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	architecturePage = "ARCHITECTURE.md"
	packagesBegin    = "<!-- packages: go test ./internal/repocheck -run TestPackageTable -rewrite -->\n"
	packagesEnd      = "<!-- end of packages -->"
)

// TestPackageTable compares the package table of ARCHITECTURE.md with the order of the import policy and with the first
// sentences of the package comments. With -rewrite it writes the table.
func TestPackageTable(t *testing.T) {
	text, err := os.ReadFile(architecturePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, hasBegin := strings.Cut(string(text), packagesBegin)
	_, after, hasEnd := strings.Cut(rest, packagesEnd)
	if !hasBegin || !hasEnd {
		t.Fatalf("%s has no table between %q and %q", architecturePage, packagesBegin, packagesEnd)
	}
	want := before + packagesBegin + packageTable(t) + packagesEnd + after
	if want == string(text) {
		return
	}
	if !*rewriteDocs {
		t.Fatalf("the package table of %s is out of date: go test ./internal/repocheck -run TestPackageTable -rewrite", architecturePage)
	}
	if err := os.WriteFile(architecturePage, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

func packageTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(importPolicy) {
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			name, meaning, _ := strings.Cut(strings.TrimSpace(heading), ": ")
			fmt.Fprintf(&b, "\n**%s**: %s\n\n| package | what it does |\n|---|---|\n", name, meaning)
			continue
		}
		if pkg, _, ok := strings.Cut(line, ":"); ok {
			fmt.Fprintf(&b, "| `%s` | %s |\n", pkg, synopsis(t, pkg))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// synopsis returns the first sentence of a package's comment, as cellText formats it.
func synopsis(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s: %v", pkg, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if packageDoc(f) != "" {
			return cellText(f)
		}
	}
	t.Fatalf("package %s has no comment", pkg)
	return ""
}

// cellText returns the first sentence of a file's package comment as the text of a table cell: without the words
// "Package name" and without a full stop.
func cellText(f *ast.File) string {
	text := new(doc.Package).Synopsis(f.Doc.Text())
	for _, prefix := range []string{"Package ", "Command "} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			_, text, _ = strings.Cut(rest, " ")
		}
	}
	return strings.TrimSuffix(strings.ReplaceAll(text, "|", `\|`), ".")
}

// pathInTable matches a path in a table of ARCHITECTURE.md. It does not match exported names, which begin with a
// capital letter, or commands, which have blanks.
var pathInTable = regexp.MustCompile("`([a-z0-9_.*-]+(?:/[a-zA-Z0-9_.*-]+)*/?)`")

// TestArchitecturePaths: each path in "Where to change what" exists, relative to the root or to internal, and is not a
// test file.
func TestArchitecturePaths(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(architecturePage)
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n## Where to change what\n")
	if !ok {
		t.Fatalf("%s has no section Where to change what", architecturePage)
	}
	paths := pathInTable.FindAllStringSubmatch(table, -1)
	if len(paths) < 60 {
		t.Errorf("pathInTable finds %d paths in %s, want at least 60: the pattern may be wrong", len(paths), architecturePage)
	}
	for _, found := range paths {
		if !exists(found[1]) {
			t.Errorf("%s: path %s does not exist", architecturePage, found[1])
		}
	}
}

// exists reports whether a path or pattern matches a folder, or a file other than a test. repocheck/deps_test.go
// counts, too, because it has the import policy.
func exists(pattern string) bool {
	for _, root := range []string{".", "internal"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err == nil && slices.ContainsFunc(files,
			func(f string) bool { return pattern == "repocheck/deps_test.go" || !strings.HasSuffix(f, "_test.go") }) {
			return true
		}
	}
	return false
}
