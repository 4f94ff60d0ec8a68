package repocheck

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// fields is a folder or file, for which TestFieldComments lists the exported fields without a comment:
//
//	go test ./internal/repocheck -v -run TestFieldComments -fields internal/kube
var fields = flag.String("fields", "", "list exported fields without a comment in this `FOLDER` or file; . lists all")

// minFieldComments is the percentage of exported struct fields that must have a comment.
const minFieldComments = 95.0

// TestFieldComments counts the exported fields of exported structs that have a comment, in all modules, without tests
// and generated files.
//
// A comment above a field or at the end of its line documents the field. A comment above the first of several fields on
// consecutive lines documents all of them.
func TestFieldComments(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "*.go").Output()
	if err != nil {
		t.Skipf("no git checkout: %v", err)
	}
	total, commented := 0, 0
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // deleted, but not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		isListed := *fields == "." || *fields != "" && (file == *fields || strings.HasPrefix(file, *fields+"/"))
		n, uncommented := exportedFields(t, file, text)
		total, commented = total+n, commented+n-len(uncommented)
		for _, field := range uncommented {
			if isListed {
				fmt.Println(field)
			}
		}
	}
	share := 100 * float64(commented) / float64(total)
	t.Logf("%d of %d exported fields have a comment (%.1f %%)", commented, total, share)
	if share < minFieldComments {
		t.Errorf("%.1f %% of the exported fields have a comment, want at least %.1f %%: run this test with -v -fields . to list the fields without a comment", share, minFieldComments)
	}
}

// exportedFields returns the number of exported fields of a file's exported structs, and the positions and names of
// those without a comment.
func exportedFields(t *testing.T, file string, text []byte) (total int, uncommented []string) {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(parsed) {
		return 0, nil
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Name.IsExported() {
			return true
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		previousLine, isGroupCommented := 0, false
		for _, field := range structure.Fields.List {
			first, last := fset.Position(field.Pos()).Line, fset.Position(field.End()).Line
			isGroupCommented = field.Doc != nil || isGroupCommented && first == previousLine+1
			previousLine = last
			for _, name := range field.Names {
				if !name.IsExported() {
					continue
				}
				total++
				if !isGroupCommented && field.Comment == nil {
					uncommented = append(uncommented, fmt.Sprintf("%s:%d: %s.%s", file, first, spec.Name.Name, name.Name))
				}
			}
		}
		return true
	})
	return total, uncommented
}

// TestExportedFields: a comment above a field, at the end of its line or above its group documents the field.
// Unexported fields, embedded fields and fields of unexported types are ignored.
func TestExportedFields(t *testing.T) {
	t.Parallel()
	const text = `package p

type A struct {
	// B and C share a comment.
	B int
	C int

	D, E int // both
	F    int
	g    int
	embedded
}

type h struct{ I int }
`
	total, uncommented := exportedFields(t, "p.go", []byte(text))
	if total != 5 || len(uncommented) != 1 || uncommented[0] != "p.go:9: A.F" {
		t.Errorf("%d fields, want 5; without a comment: %v, want p.go:9: A.F", total, uncommented)
	}
}
