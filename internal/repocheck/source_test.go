package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sourceFacts has facts about the product's code, which the tests parse without compiling it. Uses of names do not
// count in tests, in test tools, in packages that only list names, and in api/, which mirrors Karpenter's API.
type sourceFacts struct {
	constants   map[string][]string // value of a constant → names of the constants with this value
	literals    map[string]bool     // string literals outside of constants
	identifiers map[string]bool     // names used outside of their declaration
	selectors   map[string]bool     // selected fields and constants: the B of a.B
	warnings    map[string]string   // path of a field without effect (in warningsFile) → the warning
	metrics     map[string][]string // name → labels
	metricField map[string]string   // name → its field in package metrics
	metricHelp  map[string]string   // name → help
	metricKind  map[string]string   // name → counter, gauge, histogram, summary
}

// uses reports whether the code uses a name of Karpenter, as a string literal or as a constant with that value.
func (s sourceFacts) uses(name string) bool {
	return s.literals[name] || slices.ContainsFunc(s.constants[name], func(constant string) bool { return s.identifiers[constant] })
}

func (s sourceFacts) metricNames() []string { return slices.Sorted(maps.Keys(s.metrics)) }

func readSource(t *testing.T) sourceFacts {
	t.Helper()
	s := sourceFacts{
		constants: map[string][]string{}, literals: map[string]bool{}, identifiers: map[string]bool{}, selectors: map[string]bool{},
		warnings: map[string]string{}, metrics: map[string][]string{},
		metricField: map[string]string{}, metricHelp: map[string]string{}, metricKind: map[string]string{},
	}
	groups := map[string]string{"api/karpenter/v1": "karpenter.sh", "api/karpenter/v1alpha1": "karpenter.sh",
		"api/aws/v1": "karpenter.k8s.aws"}
	// Tools, test packages, and packages that only list names.
	skip := []string{"bench", "lab", "hack", "internal/emulator", "internal/node/userdata", "internal/scenario",
		"internal/scheduling/packing/verify", "internal/repocheck", "internal/permissions"}
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if file != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || slices.Contains(skip, filepath.ToSlash(file))) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(d.Name(), "zz_generated") {
			return nil
		}
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(file))
		s.addConstants(f, groups[folder])
		switch {
		case filepath.ToSlash(file) == warningsFile:
			s.readWarnings(f)
		case !strings.HasPrefix(folder, "api/") && folder != metricsFolder:
			s.addUses(f)
		}
		if folder == metricsFolder {
			s.readMetrics(f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, field := range s.metricField {
		if !s.selectors[field] {
			t.Errorf("metric %s is registered but never set: no code uses the field %s", name, field)
		}
	}
	return s
}

const metricsFolder = "internal/metrics"

// warningsFile contains the controller's warnings about fields of objects without effect. A field that is read only
// there does not count as supported.
const warningsFile = "internal/controller/nodeclass/ineffectivefields.go"

// readWarnings collects the literals {"path, path", "what happens instead"} of type ineffectiveField.
func (s sourceFacts) readWarnings(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok || len(literal.Elts) != 2 {
			return true
		}
		paths, ok := textOf(literal.Elts[0], "")
		warning, hasWarning := textOf(literal.Elts[1], "")
		if ok && hasWarning {
			for _, path := range strings.Split(paths, ", ") {
				s.warnings[path] = warning
			}
		}
		return true
	})
}

// addConstants collects string constants. group is the value of the identifier Group in the file.
func (s sourceFacts) addConstants(f *ast.File, group string) {
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, value := range v.Values {
				if text, ok := textOf(value, group); ok {
					s.constants[text] = append(s.constants[text], v.Names[i].Name)
				}
			}
		}
	}
}

// textOf returns the value of a string literal, of a concatenation, or of the constant Group, whose value is group. A
// Group of another package counts as karpenter.sh. The second result is false for other expressions.
func textOf(e ast.Expr, group string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		return group, e.Name == "Group" && group != ""
	case *ast.SelectorExpr:
		return "karpenter.sh", e.Sel.Name == "Group"
	case *ast.BinaryExpr:
		left, isLeftText := textOf(e.X, group)
		right, isRightText := textOf(e.Y, group)
		return left + right, isLeftText && isRightText && e.Op == token.ADD
	}
	return "", false
}

// addUses collects the names and string literals that the code uses outside of constants.
func (s sourceFacts) addUses(f *ast.File) {
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if ok && (g.Tok == token.CONST || g.Tok == token.IMPORT || g.Tok == token.TYPE) {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				s.selectors[n.Sel.Name], s.identifiers[n.Sel.Name] = true, true
			case *ast.Ident:
				s.identifiers[n.Name] = true
			case *ast.BasicLit:
				if text, ok := textOf(n, ""); ok {
					s.literals[text] = true
				}
			}
			return true
		})
	}
}

// readMetrics collects the calls r.counters("name", "help", …, "label"…) and the like. The texts among the arguments
// are the name, the help and the labels.
func (s sourceFacts) readMetrics(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		pair, _ := n.(*ast.KeyValueExpr)
		if pair != nil { // FIELD: r.counters(…)
			n = pair.Value
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		var texts []string
		for _, arg := range call.Args {
			if text, ok := textOf(arg, ""); ok {
				texts = append(texts, text)
			}
		}
		if len(texts) < 2 || !strings.Contains(texts[0], "_") || !strings.HasSuffix(texts[1], ".") {
			return true // not a metric
		}
		s.metrics[texts[0]], s.metricHelp[texts[0]] = texts[2:], texts[1]
		if method, ok := call.Fun.(*ast.SelectorExpr); ok { // counters: counter; summaries: summary
			s.metricKind[texts[0]] = strings.TrimSuffix(strings.Replace(method.Sel.Name, "ies", "ys", 1), "s")
		}
		if pair != nil {
			s.metricField[texts[0]] = pair.Key.(*ast.Ident).Name
		}
		return true
	})
}
