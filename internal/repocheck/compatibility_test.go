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

var rewriteDocs = flag.Bool("rewrite", false, "write docs/compatibility.md anew")

// compatibilityPage is made by TestCompatibility.
const compatibilityPage = "docs/compatibility.md"

// Verdicts of the page.
const (
	asThere = "yes"
	notYet  = "not yet"
)

// told is the verdict on what is accepted and has no effect: the controller says so when it starts.
func told(says string) string { return notYet + "; accepted, and told at the start: " + says }

// TestCompatibility holds docs/compatibility.md to the code: a name of Karpenter's counts as ours if the code really uses it.
// It fails when somebody builds, or takes away, what the page speaks of: then write the page anew and read the difference.
func TestCompatibility(t *testing.T) {
	s := readSource(t)
	page := compatibilityHead +
		"\n## Settings\n\nFlags of the controller; the environment variable of `--batch-max-duration` is `BATCH_MAX_DURATION`.\n\n" + settingsTable(t) +
		"\n## Feature gates\n\n" + gatesTable(t, s) +
		"\n## Metrics\n\nWithout a prefix given, names begin with `karpenter_`. What only Joiner has begins with `joiner_`.\n\n" + metricsTable(s) +
		"\n## Events\n\nReasons of events.\n\n" + namesTable("object", "reason", theirEvents, s, nil) +
		"\n## Conditions\n\n" + namesTable("object", "type", theirConditions, s, conditionPath) +
		"\n## Labels, annotations, taints, finalizers and tags\n\n" + namesTable("kind", "key", theirKeys, s, keyPath) +
		"\n## Fields\n\nAll fields of Karpenter's API are accepted, with its defaults and its checks. \"" + notYet + "\" means that nothing is done about them, " +
		"and that the controller says so of each object that has them, in one line of its log and an event `FieldNotHonoured`.\n\n" +
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
			t.Errorf("%s is not what the code says: %s", compatibilityPage, line)
		}
	}
	t.Errorf("go test . -run TestCompatibility -rewrite writes it anew")
}

const compatibilityHead = `# Joiner and Karpenter

Joiner takes Karpenter's place in a cluster: NodePools, NodeClaims, EC2NodeClasses and NodeOverlays are read as they are, and nodes that Karpenter made
are taken over. This page says row by row what of Karpenter 1.14 is there and what is not yet. It is made from the code by a test
(` + "`TestCompatibility`" + `), which fails when it is no longer true.
`

// rowsOf reads a table of facts: words, and after | a remark.
func rowsOf(facts string) (rows [][]string, remarks []string) {
	for line := range strings.Lines(facts) {
		row, remark, _ := strings.Cut(strings.TrimSpace(line), "|")
		if words := strings.Fields(row); len(words) > 0 {
			rows, remarks = append(rows, words), append(remarks, strings.TrimSpace(remark))
		}
	}
	return rows, remarks
}

func head(columns ...string) string {
	return "| " + strings.Join(columns, " | ") + " |\n|" + strings.Repeat("---|", len(columns)) + "\n"
}

// settingsTable tries each setting: whether it is taken, whether it changes anything, and what the user is told.
func settingsTable(t *testing.T) string {
	t.Helper()
	load := func(args ...string) (config.Settings, []config.Note) {
		s, notes, err := config.Load(args, func(name string) (string, bool) { return "demo", name == "CLUSTER_NAME" })
		if err != nil {
			t.Errorf("Karpenter's setting %v is refused: %v", args, err)
		}
		return s, notes
	}
	defaults, _ := load()
	var b strings.Builder
	b.WriteString(head("flag", "Joiner"))
	rows, _ := rowsOf(theirSettings)
	for _, row := range rows {
		got, notes := load("--" + row[0] + "=" + row[1])
		verdict := "accepted; there is nothing that it could change"
		switch {
		case len(notes) > 0:
			verdict = told(notes[0].Says)
		case !reflect.DeepEqual(got, defaults):
			verdict = asThere
		}
		fmt.Fprintf(&b, "| `--%s` | %s |\n", row[0], verdict)
	}
	return b.String()
}

// gatesTable switches each gate on.
func gatesTable(t *testing.T, s source) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(head("gate", "Joiner", "remark"))
	rows, remarks := rowsOf(theirGates)
	for i, row := range rows {
		_, notes, err := config.Load([]string{"--cluster-name=c", "--feature-gates=" + row[0] + "=true"}, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Error(err)
		}
		verdict := asThere
		switch {
		case len(notes) == 1:
			verdict = told(notes[0].Says)
		case len(notes) > 1:
			t.Errorf("gate %s has %d lines at the start, want one", row[0], len(notes))
		case row[0] == "ReservedCapacity" && s.refused["spec.capacityReservationSelectorTerms"]:
			verdict = notYet
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row[0], verdict, remarks[i])
	}
	return b.String()
}

// metricsTable compares names and labels.
func metricsTable(s source) string {
	var b strings.Builder
	b.WriteString(head("metric", "Joiner", "remark"))
	rows, remarks := rowsOf(theirMetrics)
	theirs := map[string]bool{}
	for i, row := range rows {
		name, shown := "karpenter_"+row[0], row[0]
		if other, ok := strings.CutPrefix(row[0], "."); ok {
			name, shown = other, other
		}
		theirs[name] = true
		verdict := notYet
		if labels, ok := s.metrics[name]; ok {
			verdict = asThere
			if missing := slices.DeleteFunc(slices.Clone(row[1:]), func(l string) bool { return slices.Contains(labels, l) }); len(missing) > 0 {
				verdict += ", without label `" + strings.Join(missing, "`, `") + "`"
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", shown, verdict, remarks[i])
	}
	for _, name := range s.metricNames() {
		if !theirs[name] {
			fmt.Fprintf(&b, "| `%s` | Joiner's own | %s |\n", name, s.metricHelp[name])
		}
	}
	return b.String()
}

// Paths by which the controller tells of what has no effect.
func conditionPath(_, name string) string { return "status.conditions[" + name + "]" }
func keyPath(kind, name string) string    { return "metadata." + kind + "s[" + name + "]" }

// namesTable says of each name whether the code uses it, and of those that it does not what the controller says, if path says where
// that would be.
func namesTable(what, name, facts string, s source, path func(kind, name string) string) string {
	var b strings.Builder
	b.WriteString(head(what, name, "Joiner"))
	rows, remarks := rowsOf(facts)
	for i, row := range rows {
		verdict := notYet
		switch { // what is said to have no effect may still be read, to be told of
		case path != nil && s.lapses[path(row[0], row[1])] != "":
			verdict = told(s.lapses[path(row[0], row[1])])
		case s.uses(row[1]):
			verdict = asThere
		}
		if remarks[i] != "" {
			verdict += "; " + remarks[i]
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", strings.ReplaceAll(row[0], ",", ", "), row[1], verdict)
	}
	return b.String()
}

// fieldsTable lists the fields of the specs, and whether the code reads them; by name, so that a name which two fields share
// counts for both. A field that is read to be refused is not there yet.
func fieldsTable(t *testing.T, s source) string {
	t.Helper()
	_, notes, err := config.Load([]string{"--cluster-name=c", "--feature-gates=StaticCapacity=true"}, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Error(err)
	}
	static := len(notes) == 0
	var b strings.Builder
	b.WriteString(head("object", "field", "Joiner"))
	for _, o := range []struct {
		name string
		spec reflect.Type
	}{
		{"NodePool", reflect.TypeFor[karpv1.NodePoolSpec]()},
		{"NodeClaim", reflect.TypeFor[karpv1.NodeClaimSpec]()},
		{"EC2NodeClass", reflect.TypeFor[awsv1.EC2NodeClassSpec]()},
	} {
		walkFields(o.spec, "spec", func(path, goName string) {
			top, _, _ := strings.Cut(strings.TrimPrefix(path, "spec."), ".")
			verdict := notYet
			switch {
			case s.lapses[path] != "" && o.name != "NodeClaim":
				verdict = told(s.lapses[path])
			case s.refused["spec."+strings.TrimSuffix(top, "[]")]:
				verdict += ": the object is not ready, and says so"
			case path == "spec.replicas" && !static:
			case s.reads[goName]:
				verdict = asThere
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", o.name, path, verdict)
		})
	}
	return b.String()
}

// walkFields visits the fields below a type of our API, parents first.
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
		if name == "-" || name == "" { // one without a name is part of a value that is written as a text
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
