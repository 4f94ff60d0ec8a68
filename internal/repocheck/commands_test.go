package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// insertingFiles lists the files that insert text into a command without package internal/diagnosis/fix, with the
// reason why the text is safe. All other commands are values of that package, which validates the inserted text.
var insertingFiles = map[string]string{
	"internal/controller/driftcheck/driftwrite.go": "names of NodePools and EC2NodeClasses, which the API server has validated, and a hash",
	"internal/controller/nodeclaim/identity.go":    "the name of a Node, which the API server has validated",
	"internal/controller/nodeclaim/quarantine.go":  "EC2 ids, settings that are validated at startup, and names that the API server has validated",
	"internal/cli/connection/webidentity.go":       "the issuer of the process' own token",
	"internal/cli/plan.go":                         "the user's own command line",
	"internal/diagnosis/nodeclass/userdata.go":     "a comment after a command, which internal/diagnosis/fix escapes",
}

// commandForm matches a command with a verb of package fmt, such as %s.
var commandForm = regexp.MustCompile(`\b(kubectl (-|[a-z]+ )|aws [a-z0-9]+ [a-z]+-|helm [a-z]+ |joiner (plan|correct|render) )[^"]*%(\[\d\])?[sqv]`)

// TestCommandsAreValues: only internal/diagnosis/fix inserts text into commands, except for the files in
// insertingFiles. Otherwise a user who pastes a command could run text of other users.
func TestCommandsAreValues(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if d.IsDir() && file != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || isSeparateModule(file)) {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			if name := filepath.ToSlash(file); commandForm.MatchString(text) {
				seen[name] = true
				if insertingFiles[name] == "" {
					t.Errorf("%s inserts text into the command %q: build the command from values of internal/diagnosis/fix", fset.Position(literal.Pos()), text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range insertingFiles {
		if !seen[name] {
			t.Errorf("%s no longer inserts text into a command: remove it from insertingFiles", name)
		}
	}
}
