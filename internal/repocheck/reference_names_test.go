package repocheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// conditionFiles are the files with the conditions of the API and their reasons. group is the value of the constant
// Group in the file.
var conditionFiles = []struct{ file, group string }{
	{"api/karpenter/v1/condition.go", "karpenter.sh"},
	{"api/aws/v1/status.go", "karpenter.k8s.aws"},
	{"api/karpenter/v1alpha1/nodeoverlay.go", "karpenter.sh"},
}

func conditionsPage(t *testing.T, s sourceFacts) string {
	var b strings.Builder
	b.WriteString(`# Conditions

` + "`kubectl get -o yaml`" + ` shows conditions under ` + "`status.conditions`" + `, and ` + "`kubectl wait --for=condition=Ready`" + ` waits for one. Types and reasons with the same meaning as in Karpenter have Karpenter's names.
If a condition is True, its reason is its type. If AWS rejected a request, the reason is the kind of AWS's error. The message names the cause and the fix.
` + fromCode)
	lastBlock := ""
	for _, f := range conditionFiles {
		for _, c := range constantsOf(t, f.file, f.group, false) {
			isType, isReason := strings.HasPrefix(c.name, "Condition"), strings.HasPrefix(c.name, "Reason")
			// ConditionSet uses the "Reasons of any condition". It is in api/, where sourceFacts counts no uses.
			isUsed := s.uses(c.value) || strings.HasPrefix(c.block, "Reasons of any condition")
			if !isType && !isReason || !isUsed {
				continue
			}
			block := c.block
			if block == "" {
				block = "All kinds"
			}
			if block != lastBlock {
				fmt.Fprintf(&b, "\n## %s\n\n", strings.TrimSuffix(block, "."))
				b.WriteString(tableHead(map[bool]string{true: "type", false: "reason"}[isType], "meaning"))
				lastBlock = block
			}
			if c.comment == "" {
				t.Errorf("%s: %s has no comment", f.file, c.name)
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", c.value, cell(c.comment))
		}
	}
	return b.String()
}

func eventsPage(t *testing.T) string {
	const file = "internal/kube/kubeclient/event.go"
	warns := namesIn(t, file, "isWarning")
	used := usedReasons(t)
	isKarpenters := map[string]bool{}
	rows, _ := parseRows(karpenterEvents)
	for _, row := range rows {
		isKarpenters[row[1]] = true
	}
	var b strings.Builder
	b.WriteString(`# Events

` + "`kubectl describe`" + ` and ` + "`kubectl get events`" + ` show these events. The same message about an object is not repeated within two minutes (FailedScheduling: five; NodeRepairBlocked, NamesakeSeen and HeldBack: fifteen);
a changed message is emitted at once. Reasons with the same meaning as in Karpenter have Karpenter's names.
` + fromCode)
	lastGroup := ""
	for _, c := range constantsOf(t, file, "", true) {
		if !strings.HasPrefix(c.name, "Reason") || !used[c.name] {
			continue
		}
		if c.group != lastGroup {
			fmt.Fprintf(&b, "\n## %s\n\n%s", c.group, tableHead("reason", "type", "meaning", "in Karpenter"))
			lastGroup = c.group
		}
		if c.comment == "" {
			t.Errorf("%s: %s has no comment at the end of its line", file, c.name)
		}
		eventType, inKarpenter := "Normal", "no"
		if warns[c.name] {
			eventType = "Warning"
		}
		if isKarpenters[c.value] {
			inKarpenter = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.value, eventType, cell(c.comment), inKarpenter)
	}
	return b.String()
}

// namesIn returns all identifiers in a function.
func namesIn(t *testing.T, file, function string) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == function {
			ast.Inspect(fn, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					names[id.Name] = true
				}
				return true
			})
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s has no function %s", file, function)
	}
	return names
}

// usedReasons returns the event reasons of package kubeclient that the controller and cmd/joiner use:
// kubeclient.ReasonX.
func usedReasons(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, folder := range []string{"internal/controller", "cmd/joiner"} {
		eachFile(t, folder, func(f *ast.File) {
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "kubeclient" && strings.HasPrefix(s.Sel.Name, "Reason") {
						out[s.Sel.Name] = true
					}
				}
				return true
			})
		})
	}
	return out
}

func eachFile(t *testing.T, folder string, visit func(*ast.File)) {
	t.Helper()
	for _, file := range sourcesBelow(t, folder) {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		visit(f)
	}
}

func labelsPage(t *testing.T, s sourceFacts) string {
	var b strings.Builder
	b.WriteString(`# Labels, annotations, taints, finalizers and tags

Joiner reads and writes these names on objects and in AWS. Those with the same meaning as in Karpenter have Karpenter's names; the others begin with ` + "`joiner.sh/`" + `. Nodes have Kubernetes' own labels
(` + "`kubernetes.io/arch`, `node.kubernetes.io/instance-type`, `topology.kubernetes.io/zone`" + ` and so on), too.
` + fromCode)
	for _, section := range []struct {
		title    string
		prefixes []string
	}{
		{"Labels", []string{"Label"}}, {"Annotations", []string{"Annotation"}}, {"Taints", []string{"Taint"}},
		{"Finalizers", []string{"Finalizer"}}, {"Tags in AWS", []string{"Tag"}},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s", section.title, tableHead("name", "meaning"))
		for _, f := range []struct{ file, group string }{{"api/karpenter/v1/labels.go", "karpenter.sh"},
			{"api/aws/v1/labels.go", "karpenter.k8s.aws"}} {
			for _, c := range constantsOf(t, f.file, f.group, false) {
				isInSection := slices.ContainsFunc(section.prefixes, func(p string) bool { return strings.HasPrefix(c.name, p) })
				if !isInSection || !s.uses(c.value) || c.value == "owned" { // "owned" is the value of a tag
					continue
				}
				if c.comment == "" {
					t.Errorf("%s: %s has no comment", f.file, c.name)
				}
				name := c.value
				if strings.HasSuffix(name, "/") {
					name += "NAME"
				}
				fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(c.comment))
			}
		}
	}
	fmt.Fprintf(&b, "\n## Joiner's own\n\n%s", tableHead("name", "meaning"))
	meanings := joinerKeys(t)
	for _, key := range slices.Sorted(maps.Keys(meanings)) {
		if meanings[key] == "" {
			t.Errorf("the constant with the value %q has no comment", key)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", key, cell(meanings[key]))
	}
	return b.String()
}

// joinerKeys returns the values of the product's constants that begin with joiner.sh/, with their meanings.
func joinerKeys(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if file != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || isSeparateModule(file)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), `"joiner.sh/`) {
			return err
		}
		for _, c := range constantsOf(t, file, "", false) {
			if strings.HasPrefix(c.value, "joiner.sh/") && len(out[c.value]) == 0 {
				out[c.value] = firstTwoSentences(c.comment)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// firstTwoSentences returns the first two sentences of a comment. Later ones are for readers of the code.
func firstTwoSentences(text string) string {
	parts := strings.SplitAfterN(text, ". ", 3)
	return strings.TrimSpace(strings.Join(parts[:min(2, len(parts))], ""))
}

// sourcesBelow lists the Go files of a folder and of the folders below it, without tests. A folder without files fails
// the test.
func sourcesBelow(t *testing.T, folder string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return filepath.SkipDir
		case strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go"):
			out = append(out, file)
		}
		return nil
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("folder %s has no Go files: %v", folder, err)
	}
	return out
}
