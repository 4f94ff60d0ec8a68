package repocheck

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/joiner-sh/joiner/api/crds"
	"github.com/joiner-sh/joiner/internal/kube/manifest"
)

// kindExamples is the folder of the example manifests on the pages of kinds. The test reads them like `joiner plan -f`.
const kindExamples = "docs/examples/reference"

// kindNotes has the introduction of each kind's page.
var kindNotes = map[string]string{
	"NodePool": "A NodePool defines which nodes may be launched, how many, and how they may be disrupted. Its [conditions](conditions.md) report whether it can be used. " +
		"[Disruption](../disruption.md) and [drift](../drift.md) explain `spec.disruption` and the annotations that extend it.",
	"NodeClaim": "A NodeClaim requests one node. Joiner creates NodeClaims for pods that cannot be scheduled; a user can create one, too. Its [conditions](conditions.md) report the progress " +
		"from launch to termination: see [lifecycle](../lifecycle.md).",
	"EC2NodeClass": "An EC2NodeClass defines the EC2 instances of nodes. NodePools refer to it. Its [conditions](conditions.md) report what was found in AWS. " +
		"[User data](../userdata.md), [placement](../placement.md) and [capacity reservations](../capacity-reservations.md) have pages of their own.",
	"NodeOverlay": "A NodeOverlay replaces the price, or sets the capacity, of the offerings that it selects.",
}

// TestKindPages compares docs/reference/{nodepool,…}.md with the CRDs. With -rewrite it writes the pages.
func TestKindPages(t *testing.T) {
	t.Parallel()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		kind := definition.Spec.Names.Kind
		page := kindPage(t, definition)
		path := filepath.Join(referenceFolder, strings.ToLower(kind)+".md")
		if *rewriteDocs {
			if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != page {
			t.Errorf("%s is out of date (%v): go test ./internal/repocheck -run TestKindPages -rewrite", path, err)
		}
	}
}

// TestKindExamples: the examples of the pages pass the schemas and the rules of the CRDs.
func TestKindExamples(t *testing.T) {
	t.Parallel()
	for kind := range kindNotes {
		if _, err := manifest.ReadFiles([]string{filepath.Join(kindExamples, strings.ToLower(kind)+".yaml")}, nil); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestFieldsAreDocumented: every field of the CRDs has a description.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		for _, f := range fieldsOf(definition) {
			if strings.TrimSpace(f.description) == "" {
				t.Errorf("%s: %s has no description", definition.Spec.Names.Kind, f.path)
			}
		}
	}
}

// field is one field of a kind: kind is its type, and fallback its default as JSON.
type field struct {
	path, kind, fallback, validation, description string
	isRequired                                    bool
}

func kindPage(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) string {
	t.Helper()
	kind, version := definition.Spec.Names.Kind, definition.Spec.Versions[0]
	example, err := os.ReadFile(filepath.Join(kindExamples, strings.ToLower(kind)+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\nAPI version `%s/%s`. This page is generated from the types by a test (`TestKindPages`). `kubectl explain %s.spec` shows the same descriptions.\n\n## Example\n\n```yaml\n%s```\n",
		kind, kindNotes[kind], definition.Spec.Group, version.Name, definition.Spec.Names.Singular, example)
	section := ""
	for _, f := range fieldsOf(definition) {
		if top, _, _ := strings.Cut(f.path, "."); top != section {
			section = top
			fmt.Fprintf(&b, "\n## %s\n\n", section)
			b.WriteString(tableHead("field", "type", "default", "validation", "description"))
		}
		fallback := f.fallback
		if f.isRequired && fallback == "" {
			fallback = "required"
		} else {
			fallback = code(fallback)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.path, f.kind, strings.ReplaceAll(fallback, "|", `\|`),
			f.validation, cell(f.description))
	}
	return b.String()
}

// fieldsOf lists spec and status with all fields below them, in the order of their paths.
func fieldsOf(definition *apiextensionsv1.CustomResourceDefinition) []field {
	var out []field
	root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, top := range []string{"spec", "status"} {
		props, ok := root.Properties[top]
		if !ok {
			continue
		}
		out = append(out, fieldOf(top, &props, slices.Contains(root.Required, top)))
		out = append(out, fieldsBelow(top, &props)...)
	}
	return out
}

func fieldsBelow(path string, props *apiextensionsv1.JSONSchemaProps) []field {
	if props.Items != nil && props.Items.Schema != nil {
		return fieldsBelow(path+"[]", props.Items.Schema)
	}
	var out []field
	if strings.HasSuffix(path, ".conditions[]") {
		return nil // metav1.Condition, which every Kubernetes kind has
	}
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		child := props.Properties[name]
		out = append(out, fieldOf(path+"."+name, &child, slices.Contains(props.Required, name)))
		out = append(out, fieldsBelow(path+"."+name, &child)...)
	}
	return out
}

func fieldOf(path string, props *apiextensionsv1.JSONSchemaProps, isRequired bool) field {
	f := field{path: path, kind: typeOf(props), isRequired: isRequired, description: props.Description}
	if props.Default != nil {
		f.fallback = string(props.Default.Raw)
	}
	f.validation = strings.Join(validationOf(props), "; ")
	return f
}

// typeOf returns the name of a type as in kubectl explain: string, []string, map[string]string, object.
func typeOf(props *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case props.XIntOrString:
		return "quantity"
	case props.Items != nil && props.Items.Schema != nil:
		return "[]" + typeOf(props.Items.Schema)
	case props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil:
		return "map[string]" + typeOf(props.AdditionalProperties.Schema)
	}
	return props.Type
}

func validationOf(props *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case props.Minimum != nil && props.Maximum != nil:
		out = append(out, number(*props.Minimum)+" to "+number(*props.Maximum))
	case props.Minimum != nil:
		out = append(out, "at least "+number(*props.Minimum))
	case props.Maximum != nil:
		out = append(out, "at most "+number(*props.Maximum))
	}
	if props.MaxItems != nil {
		out = append(out, fmt.Sprintf("at most %d entries", *props.MaxItems))
	}
	if props.MaxProperties != nil {
		out = append(out, fmt.Sprintf("at most %d entries", *props.MaxProperties))
	}
	if props.MaxLength != nil {
		out = append(out, fmt.Sprintf("at most %d characters", *props.MaxLength))
	}
	enum := props.Enum
	if len(enum) == 0 && props.Items != nil && props.Items.Schema != nil {
		enum = props.Items.Schema.Enum
	}
	if len(enum) > 0 {
		values := make([]string, len(enum))
		for i, v := range enum {
			values[i] = "`" + strings.Trim(string(v.Raw), `"`) + "`"
		}
		out = append(out, "one of "+strings.Join(values, ", "))
	}
	const maxPattern = 60 // a longer pattern is not readable in a table
	if props.Pattern != "" && !props.XIntOrString && len(props.Pattern) < maxPattern {
		out = append(out, "`"+strings.ReplaceAll(props.Pattern, "|", `\|`)+"`")
	}
	for _, rule := range props.XValidations {
		out = append(out, cell(rule.Message))
	}
	return out
}
