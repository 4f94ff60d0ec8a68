package charts

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Files of the chart: the rules that its templates check, and the values' descriptions for editors.
const (
	rulesFile  = chart + "/values.rules.json"
	schemaFile = chart + "/values.schema.json"
)

// rule is one node of values.rules.json, with the fields that these tests use.
type rule struct {
	Title                string
	Properties           map[string]rule
	AdditionalProperties any
	Enum                 []string
	Type                 any
}

func rules(t *testing.T) rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var root rule
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestRules: the rules have exactly the keys of values.yaml, and reject unknown keys. A map with its own comment in
// values.yaml is one value, and may have other keys.
func TestRules(t *testing.T) {
	t.Parallel()
	isDocumented := map[string]bool{}
	for _, v := range documentedValues(t) {
		isDocumented[v.path] = true
	}
	var compare func(path string, r rule, values map[string]any)
	compare = func(path string, r rule, values map[string]any) {
		if r.AdditionalProperties != false {
			t.Errorf("the rules allow any key in %q", path)
		}
		for name, v := range values {
			here := strings.TrimPrefix(path+"."+name, ".")
			known, ok := r.Properties[name]
			if !ok {
				t.Errorf("the rules do not have %s", here)
			}
			if below, isMap := v.(map[string]any); isMap && !isDocumented[here] {
				compare(here, known, below)
			}
		}
		for name := range r.Properties {
			if _, ok := values[name]; !ok && path+name != "global" { // Helm itself adds global
				t.Errorf("values.yaml does not have %s.%s", path, name)
			}
		}
	}
	compare("", rules(t), defaultValues(t))
}

// schemaNode is one value in values.schema.json. It has no constraints, because Helm would report a violation before
// the templates can, and without a suggestion.
type schemaNode struct {
	Schema      string                `json:"$schema,omitempty"`
	Title       string                `json:"title,omitempty"`
	Description string                `json:"description,omitempty"`
	Default     any                   `json:"default,omitempty"`
	Examples    []string              `json:"examples,omitempty"`
	Properties  map[string]schemaNode `json:"properties,omitempty"`
}

// TestSchema compares values.schema.json, which editors use for completion and help, with values.yaml and the rules.
func TestSchema(t *testing.T) {
	t.Parallel()
	comments := map[string]string{}
	for _, v := range documentedValues(t) {
		comments[v.path] = v.comment
	}
	all := defaultValues(t)
	var describe func(path string, r rule) schemaNode
	describe = func(path string, r rule) schemaNode {
		out := schemaNode{Description: comments[path], Examples: r.Enum}
		if defaultValue, ok := valueAt(all, path); ok && len(r.Properties) == 0 {
			out.Default = defaultValue
		}
		for name, below := range r.Properties {
			if out.Properties == nil {
				out.Properties = map[string]schemaNode{}
			}
			out.Properties[name] = describe(strings.TrimPrefix(path+"."+name, "."), below)
		}
		return out
	}
	root := describe("", rules(t))
	root.Schema, root.Title = "https://json-schema.org/draft/2020-12/schema", "Values of the chart joiner: descriptions and defaults. The rules are in values.rules.json, and the templates check them."
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want := string(text) + "\n"
	if *rewrite {
		if err := os.WriteFile(schemaFile, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(schemaFile); err != nil || string(got) != want {
		t.Errorf("%s differs from values.yaml (%v): run go test ./deploy/charts -run TestSchema -rewrite", schemaFile, err)
	}
}
