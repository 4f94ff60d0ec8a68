package kubeclient

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/joiner-sh/joiner/api/crds"
)

// TestCompareDefinitions: what is newer, and what knows more, is left as it is; all else is ours to bring.
func TestCompareDefinitions(t *testing.T) {
	t.Parallel()
	revisionOf := func(n int) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(d *apiextensionsv1.CustomResourceDefinition) { d.Annotations[crds.KeyRevision] = strconv.Itoa(n) }
	}
	foreign := func(d *apiextensionsv1.CustomResourceDefinition) { delete(d.Annotations, crds.KeyRevision) }
	field := func(d *apiextensionsv1.CustomResourceDefinition, name string) {
		spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		template := spec.Properties["template"]
		template.Properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	for name, c := range map[string]struct {
		change               func(*apiextensionsv1.CustomResourceDefinition) // nil: there is none
		want                 DefinitionState
		lacking, stale, each bool // whether it is brought
		says                 string
	}{
		"none":        {nil, DefinitionMissing, true, true, true, "would be created at revision"},
		"ours":        {revisionOf(crds.Revision()), DefinitionSame, false, false, true, "has revision"},
		"a newer one": {revisionOf(crds.Revision() + 1), DefinitionNewer, false, false, false, "newer than this program's"},
		"a newer one, more": {func(d *apiextensionsv1.CustomResourceDefinition) { revisionOf(99)(d); field(d, "new") },
			DefinitionNewer, false, false, false, "revision 99 is newer"},
		"Karpenter's": {foreign, DefinitionForeign, false, true, true, "was not installed by joiner"},
		"not a number": {func(d *apiextensionsv1.CustomResourceDefinition) { d.Annotations[crds.KeyRevision] = "x" },
			DefinitionForeign, false, true, true, "was not installed by joiner"},
		"Karpenter's of 2030": {func(d *apiextensionsv1.CustomResourceDefinition) { foreign(d); field(d, "flux") },
			DefinitionBeyond, false, false, false,
			"fields that this program does not know: spec.template.flux; objects would lose them"},
		"Karpenter's of 2023": {func(d *apiextensionsv1.CustomResourceDefinition) {
			foreign(d)
			d.Status.StoredVersions = []string{"v1beta1", "v1"}
		}, DefinitionStored, false, false, false, "stored as v1beta1"},
	} {
		own, found := nodePoolDefinition(t), nodePoolDefinition(t)
		if c.change == nil {
			found = nil
		} else {
			c.change(found)
		}
		got := CompareDefinition(own, found)
		if got.State != c.want || !strings.Contains(got.Says(), c.says) {
			t.Errorf("%s: %s, %q; want %s and %q", name, got.State, got.Says(), c.want, c.says)
		}
		if lacking, stale, each := got.wanted(Lacking, false), got.wanted(Stale, false),
			got.wanted(Every, false); lacking != c.lacking || stale != c.stale || each != c.each {
			t.Errorf("%s: brought %t %t %t, want %t %t %t", name, lacking, stale, each, c.lacking, c.stale, c.each)
		}
		if force := got.wanted(Every, true); force != (c.each || c.want == DefinitionBeyond) {
			t.Errorf("%s: by force %t", name, force)
		}
	}
}

// TestOlderDefinition: a later program brings what an earlier one had brought.
func TestOlderDefinition(t *testing.T) {
	t.Parallel()
	s := DefinitionSeen{Name: "n", State: DefinitionOlder, Revision: crds.Revision() - 1}
	if !s.wanted(Stale, false) || s.wanted(Lacking, false) || s.Held() {
		t.Errorf("%+v is not brought as it should be", s)
	}
}

// TestUnknownFields names fields inside lists and maps, and none where ours keeps everything.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	str := apiextensionsv1.JSONSchemaProps{Type: "string"}
	object := func(fields map[string]apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
		return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}
	}
	list := func(of *apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: of}}
	}
	keeping := func(of *apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: of}}
	}
	all := object(nil)
	all.XPreserveUnknownFields = new(true)
	ours := object(map[string]apiextensionsv1.JSONSchemaProps{
		"a": str, "list": list(object(map[string]apiextensionsv1.JSONSchemaProps{"b": str})), "map": keeping(object(nil)), "all": *all,
	})
	theirs := object(map[string]apiextensionsv1.JSONSchemaProps{
		"list": list(object(map[string]apiextensionsv1.JSONSchemaProps{"b": str, "c": str})),
		"map":  keeping(object(map[string]apiextensionsv1.JSONSchemaProps{"d": str})),
		"all":  *object(map[string]apiextensionsv1.JSONSchemaProps{"e": str}),
	})
	if got, want := unknownFields(nil, "", ours, theirs), []string{"list[].c", "map{}.d"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func nodePoolDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if d.Name == "nodepools.karpenter.sh" {
			return d
		}
	}
	t.Fatal("there is no definition of NodePool")
	return nil
}
