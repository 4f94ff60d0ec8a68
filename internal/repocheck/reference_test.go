package repocheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/config"
)

// referenceFolder is the folder of the pages that TestReference generates from the code, and of commands.md, which
// cmd/joiner generates.
const referenceFolder = "docs/reference"

// TestReference compares docs/reference with the code, and requires a comment on each constant of the pages. With
// -rewrite it writes the pages.
func TestReference(t *testing.T) {
	s := readSource(t)
	for name, page := range map[string]string{
		"settings.md":   settingsPage(),
		"metrics.md":    metricsPage(t, s),
		"conditions.md": conditionsPage(t, s),
		"events.md":     eventsPage(t),
		"labels.md":     labelsPage(t, s),
	} {
		path := filepath.Join(referenceFolder, name)
		if *rewriteDocs {
			if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		have := strings.Split(string(got), "\n")
		for _, line := range strings.Split(page, "\n") {
			if !slices.Contains(have, line) {
				t.Errorf("%s differs from the code: it should have the line %s", path, line)
			}
		}
		if string(got) != page {
			t.Errorf("%s is out of date: go test ./internal/repocheck -run TestReference -rewrite updates it", path)
		}
	}
}

// fromCode is the sentence by which each page names its generator.
const fromCode = "\nA test (`TestReference`) generates this page from the code, and fails if the page differs from the code.\n"

func settingsPage() string {
	var b strings.Builder
	b.WriteString(`# Settings of the controller

Each is a flag of ` + "`joiner controller`" + ` and an environment variable; the flag wins, and an empty variable counts as not set. A setting with the same meaning
as in Karpenter has Karpenter's name. With a wrong name or value, the controller does not start: one line names it and the nearest valid one.
` + fromCode + "\n")
	b.WriteString(tableHead("flag", "variable", "default", "meaning"))
	for _, s := range config.All() {
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", s.Flag, s.Variable, code(s.Default), cell(s.Help))
	}
	b.WriteString("\n## Karpenter's settings without effect in Joiner\n\nJoiner accepts them, so that you can migrate an installation without changing it. If a feature is missing, and its setting " +
		"has another value than in the third column, the controller logs what is missing.\n\n")
	b.WriteString(tableHead("flag", "variable", "value without warning", "what is missing"))
	for _, s := range config.Unsupported() {
		missing := s.Help
		if missing == "" {
			missing = "nothing"
		}
		fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", s.Flag, s.Variable, code(s.Default), cell(missing))
	}
	b.WriteString(`
## What else is read

The AWS SDK reads its own variables and files: ` +
		"`AWS_PROFILE`, `AWS_ENDPOINT_URL`, `AWS_ROLE_ARN` with `AWS_WEB_IDENTITY_TOKEN_FILE` (IRSA), " +
		"`AWS_CONTAINER_CREDENTIALS_FULL_URI` (Pod Identity)" + ` and others. Without ` + "`--kubeconfig`" + `, the controller connects to the cluster with the pod's service account, or outside of a pod with ` + "`~/.kube/config`" + `.
`)
	return b.String()
}

func code(value string) string {
	if value == "" {
		return ""
	}
	return "`" + value + "`"
}

func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}

func metricsPage(t *testing.T, s sourceFacts) string {
	var b strings.Builder
	b.WriteString(`# Metrics

` + "`/metrics`" + ` on ` + "`--metrics-port`" + ` (8080). A metric with the same meaning as in Karpenter has Karpenter's name, so that dashboards and alerts continue to work. The names of other metrics begin with ` + "`joiner_`" + `.
` + "[deploy/dashboards/joiner.json](../../deploy/dashboards/joiner.json)" + ` is a Grafana dashboard of these metrics, ` + "[deploy/alerts/joiner.yaml](../../deploy/alerts/joiner.yaml)" + ` has alerts.
Durations are in seconds. The controller also has the usual metrics of controller-runtime (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_*`" + `) and of Go (` + "`go_*`, `process_*`" + `).
` + fromCode + "\n")
	b.WriteString(tableHead("metric", "kind", "labels", "meaning"))
	for _, name := range s.metricNames() {
		if s.metricKind[name] == "" {
			t.Errorf("metric %s: its kind is unknown", name)
		}
		labels := ""
		for i, l := range s.metrics[name] {
			if i > 0 {
				labels += ", "
			}
			labels += code(l)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, s.metricKind[name], labels, cell(s.metricHelp[name]))
	}
	return b.String()
}

type constant struct {
	name, value string
	block       string // first sentence of the comment of its const block
	group       string // title of its group in the block, if the block has groups
	comment     string // as meaningOf returns it
}

// constantsOf returns the string constants of a file. group is the value of the constant Group in the file. If
// isGrouped is true, a comment above a constant is the title of the following constants, and the comment of a constant
// is at the end of its line.
func constantsOf(t *testing.T, file, group string, isGrouped bool) []constant {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []constant
	// values has the constants of the file by name, imported those of other packages.
	values, imported := map[string]string{}, map[string]string{"LabelNodePool": "karpenter.sh/nodepool"}
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		title := ""
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			if isGrouped && v.Doc != nil {
				title = strings.TrimSuffix(firstSentence(v.Doc.Text()), ".")
			}
			if len(v.Names) != 1 || len(v.Values) != 1 {
				continue
			}
			value, ok := textOf(v.Values[0], group)
			switch other := v.Values[0].(type) { // a constant that is equal to another one
			case *ast.Ident:
				value, ok = values[other.Name], values[other.Name] != ""
			case *ast.SelectorExpr:
				value, ok = imported[other.Sel.Name], imported[other.Sel.Name] != ""
			}
			if !ok {
				continue
			}
			values[v.Names[0].Name] = value
			c := constant{name: v.Names[0].Name, value: value, block: firstSentence(g.Doc.Text()), group: title, comment: v.Comment.Text()}
			if !isGrouped && v.Doc != nil {
				c.comment = v.Doc.Text()
			}
			if !g.Lparen.IsValid() { // not in a block
				c.comment, c.block = g.Doc.Text(), ""
			}
			c.comment = meaningOf(c.name, c.comment)
			out = append(out, c)
		}
	}
	for i := range out {
		out[i].comment = constantName.ReplaceAllStringFunc(out[i].comment, func(name string) string {
			if value := values[name]; value != "" {
				return code(value)
			}
			return name
		})
	}
	return out
}

// constantName matches names of constants in comments. The pages show their values instead.
var constantName = regexp.MustCompile(`\b(Label|Annotation|Tag|Taint|Condition|Reason)[A-Z]\w+\b`)

func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if first, _, ok := strings.Cut(text, ". "); ok {
		return first + "."
	}
	return text
}

// meaningOf returns the comment of a constant without the constant's name, with a capital letter and a full stop. The
// comment "AnnotationX on a NodePool is the hash" becomes "On a NodePool: the hash."
func meaningOf(name, comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	if object, ok := strings.CutPrefix(text, name+" on "); ok {
		text = "on " + strings.Replace(object, " is ", ": ", 1)
	}
	text = strings.TrimPrefix(text, name+" ")
	for _, begin := range []string{"says that ", "says ", "is "} {
		if rest, ok := strings.CutPrefix(text, begin); ok {
			text = rest
			break
		}
	}
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
