package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPackageDocs: every package has a comment, as checkDoc requires. A file has at most 600 lines, a test file at most
// 800.
func TestPackageDocs(t *testing.T) {
	docs := map[string]string{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (d.Name()[0] == '.' || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasPrefix(d.Name(), "zz_generated") {
			return nil
		}
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		lines := fset.File(f.Pos()).LineCount()
		if limit := 600; lines > limit && !strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s has %d lines, more than %d: split it by responsibility", file, lines, limit)
		}
		if limit := 800; lines > limit {
			t.Errorf("%s has %d lines, more than %d: split it by behavior", file, lines, limit)
		}
		if !strings.HasSuffix(file, "_test.go") {
			docs[filepath.Dir(file)] += packageDoc(f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Sorted(maps.Keys(docs)) {
		checkDoc(t, dir, docs[dir])
	}
}

func packageDoc(f *ast.File) string {
	if f.Doc == nil {
		return ""
	}
	return f.Doc.Text()
}

// checkDoc checks that the comment of a package has the lines In, Out and Never. It exempts the root, which has no
// code; programs; and the packages below api/, which document their fields.
func checkDoc(t *testing.T, dir, doc string) {
	if doc == "" {
		t.Errorf("package %s has no comment", dir)
		return
	}
	if dir == "." || strings.HasPrefix(dir, "api/") || strings.HasPrefix(doc, "Command ") {
		return
	}
	for _, want := range []string{"\nIn: ", "\nOut: ", "\nNever: "} {
		if !strings.Contains(doc, want) {
			t.Errorf("the comment of package %s has no line%q", dir, want)
		}
	}
}
