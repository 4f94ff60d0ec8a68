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
		checkDescription(t, "variable "+name, v.Description)
		defaultCell := "must be set"
		if v.DefaultText != "" {
			defaultCell = "`" + v.DefaultText + "`"
		}
		typ := strings.Join(strings.Fields(v.TypeText), " ")
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", name, typ, defaultCell, cell(v.Description))
	}
	b.WriteString("\n## Outputs\n\n| name | |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(m.Outputs)) {
		checkDescription(t, "output "+name, m.Outputs[name].Description)
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(m.Outputs[name].Description))
	}
	checkTables(t, filepath.Join(joiner, "README.md"), b.String())
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
		checkDescription(t, "parameter "+name, p.Description)
		defaultCell := "must be set"
		if p.Default != nil {
			defaultCell = "`" + *p.Default + "`"
		}
		if defaultCell == "``" {
			defaultCell = "none"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, defaultCell, cell(p.Description))
	}
	b.WriteString("\n## Outputs\n\n| name | |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(template.Outputs)) {
		description, _ := template.Outputs[name]["Description"].(string)
		checkDescription(t, "output "+name, description)
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(description))
	}
	checkTables(t, filepath.Join(filepath.Dir(cloudformation), "README.md"), b.String())
}

// checkTables checks that a README has the tables between two comments, or writes them with -rewrite.
func checkTables(t *testing.T, file, tables string) {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "-run TestReadme -rewrite -->\n", "\n<!-- end -->" // begin: the end of the first comment
	before, rest, hasBegin := strings.Cut(string(text), begin)
	_, after, hasEnd := strings.Cut("\n"+rest, end) // "\n": without tables, end follows begin directly
	if !hasBegin || !hasEnd {
		t.Fatalf("%s does not have the comments before and after its tables", file)
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

func checkDescription(t *testing.T, what, description string) {
	t.Helper()
	if !strings.HasSuffix(description, ".") {
		t.Errorf("the description of %s does not end with a full stop: %q", what, description)
	}
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`).Replace(text)
}

// TestVariablesAreUsed checks that each module uses exactly the declared variables.
func TestVariablesAreUsed(t *testing.T) {
	t.Parallel()
	for _, folder := range folders(t) {
		m, err := Read(folder)
		if err != nil {
			t.Fatal(err)
		}
		if declared := slices.Sorted(maps.Keys(m.Variables)); !slices.Equal(declared, m.UsedVariables()) {
			t.Errorf("%s declares the variables %v\nand uses %v", folder, declared, m.UsedVariables())
		}
	}
}

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
		t.Fatalf("only the folders %v have Terraform files, want at least 4", out)
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
		t.Skip(file + " does not exist")
	}
	var chart, values map[string]any
	if err != nil || yaml.Unmarshal(text, &chart) != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	if err := yaml.Unmarshal([]byte(planJoiner(t, nil).Outputs["chart_values"].AsString()), &values); err != nil {
		t.Fatal(err)
	}
	var compare func(path string, values, defaults map[string]any)
	compare = func(path string, values, defaults map[string]any) {
		for name, value := range values {
			chartValue, ok := defaults[name]
			if !ok {
				t.Errorf("the chart has no value %s%s", path, name)
			}
			innerValues, _ := value.(map[string]any)
			innerDefaults, _ := chartValue.(map[string]any)
			compare(path+name+".", innerValues, innerDefaults)
		}
	}
	compare("", values, chart)
}
