package repocheck

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/config"
)

var rewriteDocs = flag.Bool("rewrite", false, "rewrite the generated documents")

const compatibilityPage = "docs/compatibility.md"

// What the page says about a name.
const (
	supported = "yes"
	notYet    = "not yet"
)

// notYetLogged returns the verdict on a name that Joiner accepts without effect, and for which the controller logs the
// warning on startup.
func notYetLogged(warning string) string {
	return notYet + "; accepted, and logged at the start: " + warning
}

// TestCompatibility compares docs/compatibility.md with the code: a name of Karpenter counts as supported if the code
// uses it. With -rewrite it writes the page.
func TestCompatibility(t *testing.T) {
	s := readSource(t)
	page := compatibilityHead +
		"\n## Settings\n\nFlags of the controller; the environment variable of `--batch-max-duration` is `BATCH_MAX_DURATION`.\n\n" + settingsTable(t) +
		"\n## Feature gates\n\n" + gatesTable(t, s) +
		"\n## Metrics\n\nNames without a prefix begin with `karpenter_`. Joiner's own metrics begin with `joiner_`.\n\n" + metricsTable(s) +
		"\n## Events\n\nReasons of events.\n\n" + namesTable("object", "reason", karpenterEvents, s, nil) +
		"\n## Conditions\n\n" + namesTable("object", "type", karpenterConditions, s, conditionPath) +
		"\n## Labels, annotations, taints, finalizers and tags\n\n" + namesTable("kind", "key", karpenterKeys, s, keyPath) +
		"\n## Fields\n\nAll fields of Karpenter's API are accepted, with the same defaults and validation. \"" + notYet +
		"\" means that the field has no effect, " +
		"and that the controller reports each object that sets the field, with one log line and an event `FieldNotHonoured`.\n\n" +
		fieldsTable(t, s)
	if *rewriteDocs {
		if err := os.WriteFile(compatibilityPage, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == page {
		return
	}
	have := strings.Split(string(got), "\n")
	for _, line := range strings.Split(page, "\n") {
		if !slices.Contains(have, line) {
			t.Errorf("%s differs from the code: it should have the line %s", compatibilityPage, line)
		}
	}
	t.Errorf("run go test ./internal/repocheck -run TestCompatibility -rewrite, and review the difference")
}

const compatibilityHead = `# Joiner and Karpenter

This page is for operators who consider a switch from Karpenter: it lists, row by row, which settings, metrics, events, conditions and fields of Karpenter 1.14
Joiner supports. Joiner uses NodePools, NodeClaims, EC2NodeClasses and NodeOverlays unchanged, and manages the nodes that Karpenter launched. A test
(` + "`TestCompatibility`" + `) compares this page with the code.
`

// parseRows parses lines of facts. It returns the words of each line before |, and the remark after |.
func parseRows(facts string) (rows [][]string, remarks []string) {
	for line := range strings.Lines(facts) {
		row, remark, _ := strings.Cut(strings.TrimSpace(line), "|")
		if words := strings.Fields(row); len(words) > 0 {
			rows, remarks = append(rows, words), append(remarks, strings.TrimSpace(remark))
		}
	}
	return rows, remarks
}

func tableHead(columns ...string) string {
	return "| " + strings.Join(columns, " | ") + " |\n|" + strings.Repeat("---|", len(columns)) + "\n"
}

// settingsTable tries each setting and lists whether it is accepted, whether it has an effect, and the warning for the
// user.
func settingsTable(t *testing.T) string {
	t.Helper()
	load := func(args ...string) (config.Settings, []config.Note) {
		s, notes, err := config.Load(args, func(name string) (string, bool) { return "demo", name == "CLUSTER_NAME" })
		if err != nil {
			t.Errorf("package config rejects Karpenter's setting %v: %v", args, err)
		}
		return s, notes
	}
	defaults, _ := load()
	var b strings.Builder
	b.WriteString(tableHead("flag", "Joiner"))
	rows, _ := parseRows(karpenterSettings)
	for _, row := range rows {
		got, notes := load("--" + row[0] + "=" + row[1])
		verdict := "accepted; has no effect"
		switch {
		case len(notes) > 0:
			verdict = notYetLogged(notes[0].Explanation)
		case !reflect.DeepEqual(got, defaults):
			verdict = supported
		}
		fmt.Fprintf(&b, "| `--%s` | %s |\n", row[0], verdict)
	}
	return b.String()
}

// gatesTable enables each feature gate and lists the warning for the user.
func gatesTable(t *testing.T, s sourceFacts) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(tableHead("gate", "Joiner", "remark"))
	rows, remarks := parseRows(karpenterGates)
	for i, row := range rows {
		_, notes, err := config.Load([]string{"--cluster-name=c", "--feature-gates=" + row[0] + "=true"},
			func(string) (string, bool) { return "", false })
		if err != nil {
			t.Errorf("package config rejects Karpenter's gate %s: %v", row[0], err)
		}
		verdict := supported
		switch {
		case len(notes) == 1:
			verdict = notYetLogged(notes[0].Explanation)
		case len(notes) > 1:
			t.Errorf("gate %s causes %d log lines on startup, want at most one", row[0], len(notes))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row[0], verdict, remarks[i])
	}
	return b.String()
}

// metricsTable lists for each metric of Karpenter whether Joiner has it with the same labels, then Joiner's other
// metrics.
func metricsTable(s sourceFacts) string {
	var b strings.Builder
	b.WriteString(tableHead("metric", "Joiner", "remark"))
	rows, remarks := parseRows(karpenterMetrics)
	isKarpenters := map[string]bool{}
	for i, row := range rows {
		name, shown := "karpenter_"+row[0], row[0]
		if fullName, ok := strings.CutPrefix(row[0], "."); ok {
			name, shown = fullName, fullName
		}
		isKarpenters[name] = true
		verdict := notYet
		if labels, ok := s.metrics[name]; ok {
			verdict = supported
			if missing := slices.DeleteFunc(slices.Clone(row[1:]), func(l string) bool { return slices.Contains(labels, l) }); len(missing) > 0 {
				verdict += ", without label `" + strings.Join(missing, "`, `") + "`"
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", shown, verdict, remarks[i])
	}
	for _, name := range s.metricNames() {
		if !isKarpenters[name] {
			fmt.Fprintf(&b, "| `%s` | Joiner's own | %s |\n", name, s.metricHelp[name])
		}
	}
	return b.String()
}

// conditionPath and keyPath return the key of a condition, or of a label or annotation, in sourceFacts.warnings.
func conditionPath(_, name string) string { return "status.conditions[" + name + "]" }
func keyPath(kind, name string) string    { return "metadata." + kind + "s[" + name + "]" }

// namesTable lists for each name of facts whether the code uses it, and the controller's warning if the name has no
// effect. path returns the key of a name in sourceFacts.warnings; nil if there are no warnings about such names.
func namesTable(kindColumn, nameColumn, facts string, s sourceFacts, path func(kind, name string) string) string {
	var b strings.Builder
	b.WriteString(tableHead(kindColumn, nameColumn, "Joiner"))
	rows, remarks := parseRows(facts)
	for i, row := range rows {
		verdict := notYet
		switch { // the warning comes first: the code may read a field without effect only to warn about it
		case path != nil && s.warnings[path(row[0], row[1])] != "":
			verdict = notYetLogged(s.warnings[path(row[0], row[1])])
		case s.uses(row[1]):
			verdict = supported
		}
		if remarks[i] != "" {
			verdict += "; " + remarks[i]
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", strings.ReplaceAll(row[0], ",", ", "), row[1], verdict)
	}
	return b.String()
}

// fieldsTable lists the fields of the specs, and whether the code reads them. It compares names, so a name that two
// fields share counts for both.
func fieldsTable(t *testing.T, s sourceFacts) string {
	t.Helper()
	_, notes, err := config.Load([]string{"--cluster-name=c", "--feature-gates=StaticCapacity=true"},
		func(string) (string, bool) { return "", false })
	if err != nil {
		t.Errorf("package config rejects the gate StaticCapacity: %v", err)
	}
	isStaticSupported := len(notes) == 0
	var b strings.Builder
	b.WriteString(tableHead("object", "field", "Joiner"))
	for _, o := range []struct {
		name string
		spec reflect.Type
	}{
		{"NodePool", reflect.TypeFor[karpv1.NodePoolSpec]()},
		{"NodeClaim", reflect.TypeFor[karpv1.NodeClaimSpec]()},
		{"EC2NodeClass", reflect.TypeFor[awsv1.EC2NodeClassSpec]()},
	} {
		walkFields(o.spec, "spec", func(path, goName string) {
			verdict := notYet
			switch {
			case s.warnings[path] != "" && o.name != "NodeClaim": // no warning is about the spec of a NodeClaim
				verdict = notYetLogged(s.warnings[path])
			case path == "spec.replicas" && !isStaticSupported: // not yet
			case s.selectors[goName]:
				verdict = supported
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", o.name, path, verdict)
		})
	}
	return b.String()
}

// walkFields visits the fields below a type of the API, parents first.
func walkFields(typ reflect.Type, path string, visit func(path, goName string)) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || !strings.HasPrefix(typ.PkgPath(), "github.com/joiner-sh/joiner/api/") {
		return
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && (strings.Contains(option, "inline") || f.Anonymous) {
			walkFields(f.Type, path, visit)
			continue
		}
		if name == "-" || name == "" { // a field without a JSON name is part of a value that is encoded as a string
			continue
		}
		below := path + "." + name
		if f.Type.Kind() == reflect.Slice {
			below += "[]"
		}
		visit(below, f.Name)
		walkFields(f.Type, below, visit)
	}
}
