package crds

import (
	"testing"
)

func TestDefinitions(t *testing.T) {
	t.Parallel()
	definitions, err := Definitions()
	if err != nil {
		t.Fatal(err)
	}
	if len(definitions) != 4 {
		t.Fatalf("%d definitions, want 4", len(definitions))
	}
	for i, definition := range definitions {
		if want := Manifests()[i].Name; definition.Name != want {
			t.Errorf("definition %d is %s, want %s", i, definition.Name, want)
		}
		if want := definition.Spec.Names.Plural + "." + definition.Spec.Group; definition.Name != want {
			t.Errorf("definition %s: want the name %s", definition.Name, want)
		}
		if definition.Spec.Versions[0].Subresources.Status == nil {
			t.Errorf("definition %s has no status subresource", definition.Name)
		}
	}
}
