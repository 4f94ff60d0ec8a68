// Command gen adds the validation rules that markers cannot express to the CustomResourceDefinitions of controller-gen.
//
// In: the YAML files that controller-gen makes from the markers of our types.
// Out: the same files, with the rules of rules.go.
// Never: run by itself; `go generate ./api/...` runs it after controller-gen.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, file := range files() {
		if err := applyRules(file, rules(file)); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// applyRules applies the rules to the definition in the file.
func applyRules(file string, rules []rule) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read definition: %w", err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &definition); err != nil {
		return fmt.Errorf("read definition %s: %w", file, err)
	}
	schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, rule := range rules {
		if err := edit(schema, strings.Split(rule.path, "."), rule.change); err != nil {
			return fmt.Errorf("edit %s at %s: %w", file, rule.path, err)
		}
	}
	text, err := render(&definition)
	if err != nil {
		return fmt.Errorf("write definition %s: %w", file, err)
	}
	return os.WriteFile(file, text, 0o644)
}

// edit finds the schema at a path and changes it in place. A step of the path is the name of a property, "[]" for the
// items of a list, or "{}" for the values of a map.
func edit(schema *apiextensionsv1.JSONSchemaProps, path []string, change func(*apiextensionsv1.JSONSchemaProps)) error {
	if len(path) == 0 {
		change(schema)
		return nil
	}
	switch step, rest := path[0], path[1:]; {
	case step == "[]" && schema.Items != nil && schema.Items.Schema != nil:
		return edit(schema.Items.Schema, rest, change)
	case step == "{}" && schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return edit(schema.AdditionalProperties.Schema, rest, change)
	default:
		property, ok := schema.Properties[step]
		if !ok {
			return fmt.Errorf("the schema has no %q: update the rules in api/crds/gen/rules.go to match the API types", step)
		}
		if err := edit(&property, rest, change); err != nil {
			return err
		}
		schema.Properties[step] = property
		return nil
	}
}

// render returns the definition in the format of controller-gen, without the status, which only an API server sets.
func render(definition *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	text, err := yaml.Marshal(definition)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	delete(object, "status")
	text, err = yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte("---\n"), text), nil
}
