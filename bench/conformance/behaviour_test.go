package conformance

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// suite is a file of testdata: a manifest that is accepted, and cases that change it.
type suite struct {
	Definition string `json:"definition"`
	// Base is the manifest that the cases start from.
	Base  runtime.RawExtension `json:"base"`
	Cases []behaviour          `json:"cases"`
}

// behaviour is one case for both definitions.
type behaviour struct {
	Name string `json:"name"`
	// With is merged over the base (RFC 7386: null removes, lists are replaced) before the object is created.
	With runtime.RawExtension `json:"with"`
	// Then is merged over the created object, to update it. Empty: the object is only created.
	Then runtime.RawExtension `json:"then"`
	// Reject lists the fields with errors: of the update if Then is set, else of the creation. Empty: the object is
	// accepted.
	Reject []string `json:"reject"`
	// Want must be contained in the object that Karpenter's definition stores, defaults included.
	Want runtime.RawExtension `json:"want"`
	// Ours has the fields in which Joiner's stored object differs on purpose, with Joiner's values.
	Ours runtime.RawExtension `json:"ours"`
}

type result struct {
	stored map[string]any
	errs   field.ErrorList
}

// TestBehaviour creates and updates the manifests of testdata with both definitions. Both must reject the fields that
// the case lists, and store the same object, except for the fields in Ours.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	compiled := map[string][2]*Definition{}
	for name, pair := range pairs(t) {
		compiled[name] = [2]*Definition{compile(t, pair.ours), compile(t, pair.theirs)}
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, file := range files {
		suite := load(t, file)
		total += len(suite.Cases)
		definitions, ok := compiled[suite.Definition]
		if !ok {
			t.Fatalf("%s: no definition %q", file, suite.Definition)
		}
		for _, test := range suite.Cases {
			t.Run(filepath.Base(file)+"/"+test.Name, func(t *testing.T) {
				t.Parallel()
				check(t, definitions, suite.Base, test)
			})
		}
	}
	if total < 120 { // else cases are no longer read
		t.Errorf("testdata has %d cases, want at least 120", total)
	}
}

// check compares the results of one case with each other and with the case.
func check(t *testing.T, definitions [2]*Definition, base runtime.RawExtension, test behaviour) {
	ours := runCase(t, definitions[0], base, test)
	theirs := runCase(t, definitions[1], base, test)
	if diff := gocmp.Diff(errorKinds(theirs.errs), errorKinds(ours.errs)); diff != "" {
		t.Errorf("errors differ (-theirs +ours):\n%s", diff)
	}
	want := theirs.stored
	if deviation := decode(t, test.Ours.Raw); deviation != nil {
		want = merge(want, deviation)
	}
	if diff := gocmp.Diff(want, ours.stored); diff != "" {
		t.Errorf("stored objects differ (-theirs with the fields in Ours, +ours):\n%s", diff)
	}
	if diff := gocmp.Diff(test.Reject, fields(theirs.errs)); diff != "" {
		t.Errorf("fields with errors (-want +got):\n%s%v", diff, theirs.errs.ToAggregate())
	}
	if part := decode(t, test.Want.Raw); part != nil {
		if diff := gocmp.Diff(merge(theirs.stored, part), theirs.stored); diff != "" {
			t.Errorf("stored by theirs (-want +got):\n%s", diff)
		}
	}
}

// runCase creates the object of a case with one definition, and updates the object if the case has an update.
func runCase(t *testing.T, definition *Definition, base runtime.RawExtension, test behaviour) result {
	object := merge(decode(t, base.Raw), decode(t, test.With.Raw))
	definition.Read(object)
	errs := definition.Create(t.Context(), object)
	then := decode(t, test.Then.Raw)
	if then == nil {
		return result{stored: object, errs: errs}
	}
	if len(errs) > 0 {
		t.Fatalf("the object to update cannot be created: %v", errs.ToAggregate())
	}
	next := merge(object, then)
	definition.Read(next)
	return result{stored: next, errs: definition.Update(t.Context(), next, object)}
}

// merge returns a copy of an object with a merge patch applied.
func merge(object, patch map[string]any) map[string]any {
	merged := runtime.DeepCopyJSON(object)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(merged, key)
		case map[string]any:
			inner, _ := merged[key].(map[string]any)
			merged[key] = merge(inner, value)
		default:
			merged[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	return merged
}

// fields returns the fields with errors, each once, sorted; nil for none.
func fields(errs field.ErrorList) []string {
	var names []string
	for _, err := range errs {
		names = append(names, cmp.Or(err.Field, "<root>"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// errorKinds returns the errors without their texts, sorted.
func errorKinds(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, fmt.Sprintf("%s: %s", err.Field, err.Type))
	}
	slices.Sort(out)
	return out
}

func compile(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *Definition {
	t.Helper()
	definition, err := NewDefinition(crd)
	if err != nil {
		t.Fatal(err)
	}
	return definition
}

func load(t *testing.T, file string) suite {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s suite
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	return s
}

// decode decodes an object with whole numbers as int64, as the API server does; empty data returns nil.
func decode(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	return object
}
