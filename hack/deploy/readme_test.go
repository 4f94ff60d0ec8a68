package deploy

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"go.yaml.in/yaml/v3"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of README files anew")

// TestReadme checks that the module's README lists its inputs and outputs, each with a description.
func TestReadme(t *testing.T) {
	m, err := Read(joiner)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n## Inputs\n\n| name | type | default | |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(m.Variables)) {
		v := m.Variables[name]
		explained(t, "variable "+name, v.Description)
		value := "must be set"
		if v.DefaultText != "" {
			value = "`" + v.DefaultText + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", name, strings.Join(strings.Fields(v.TypeText), " "), value, cell(v.Description))
	}
	b.WriteString("\n## Outputs\n\n| name | |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(m.Outputs)) {
		explained(t, "output "+name, m.Outputs[name].Description)
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(m.Outputs[name].Description))
	}
	table(t, filepath.Join(joiner, "README.md"), b.String())
}

// TestReadmeOfTemplate checks that the template's README lists its parameters and outputs.
func TestReadmeOfTemplate(t *testing.T) {
	template, err := ReadTemplate(cloudformation)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n## Parameters\n\n| name | default | |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(template.Parameters)) {
		p := template.Parameters[name]
		explained(t, "parameter "+name, p.Description)
		value := "must be set"
		if p.Default != nil {
			value = "`" + *p.Default + "`"
		}
		if value == "``" {
			value = "none"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, value, cell(p.Description))
	}
	b.WriteString("\n## Outputs\n\n| name | |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(template.Outputs)) {
		description, _ := template.Outputs[name]["Description"].(string)
		explained(t, "output "+name, description)
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(description))
	}
	table(t, filepath.Join(filepath.Dir(cloudformation), "README.md"), b.String())
}

// table compares the tables of a README with the expected ones, or rewrites them.
func table(t *testing.T, file, tables string) {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "-run TestReadme -rewrite -->\n", "\n<!-- end -->"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, also := strings.Cut("\n"+rest, end)
	if !ok || !also {
		t.Fatalf("%s lacks the marks of its tables", file)
	}
	want := before + begin + tables + end + after
	if *rewrite {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s is outdated: run go -C hack/deploy test . -run TestReadme -rewrite", file)
	}
}

func explained(t *testing.T, what, description string) {
	t.Helper()
	if !strings.HasSuffix(description, ".") {
		t.Errorf("the description of %s is not a sentence: %q", what, description)
	}
}

// cell escapes text for a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`).Replace(text)
}

// TestVariablesAreUsed checks that every variable is used.
func TestVariablesAreUsed(t *testing.T) {
	t.Parallel()
	for _, folder := range folders(t) {
		m, err := Read(folder)
		if err != nil {
			t.Fatal(err)
		}
		if known := slices.Sorted(maps.Keys(m.Variables)); !slices.Equal(known, m.Used()) {
			t.Errorf("%s has variables %v\nand uses %v", folder, known, m.Used())
		}
	}
}

// folders returns the folders with Terraform files.
func folders(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("../../deploy/terraform", func(path string, d fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".tf" {
			out = append(out, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if out = slices.Compact(out); len(out) < 4 {
		t.Fatalf("Terraform files only in %v", out)
	}
	return out
}

// TestFormat checks that files have the format of terraform fmt.
func TestFormat(t *testing.T) {
	t.Parallel()
	for _, folder := range folders(t) {
		files, err := filepath.Glob(filepath.Join(folder, "*.tf"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(hclwrite.Format(text), text) {
				t.Errorf("terraform fmt would change %s", file)
			}
		}
	}
}

// TestChartValues checks that the chart has every value that the module sets.
func TestChartValues(t *testing.T) {
	t.Parallel()
	const file = "../../deploy/charts/joiner/values.yaml"
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		t.Skip("no chart")
	}
	var chart, set map[string]any
	if err != nil || yaml.Unmarshal(text, &chart) != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	if err := yaml.Unmarshal([]byte(planned(t, nil).Outputs["chart_values"].AsString()), &set); err != nil {
		t.Fatal(err)
	}
	var compare func(path string, set, chart map[string]any)
	compare = func(path string, set, chart map[string]any) {
		for name, v := range set {
			known, ok := chart[name]
			if !ok {
				t.Errorf("the chart has no value %s%s", path, name)
			}
			inner, _ := v.(map[string]any)
			outer, _ := known.(map[string]any)
			compare(path+name+".", inner, outer)
		}
	}
	compare("", set, chart)
}
