package kubeclient

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/joiner-sh/joiner/api/crds"
)

// TestCompareDefinitions: a CRD that is newer, or has unknown fields, is not replaced; all other CRDs are.
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
		change               func(*apiextensionsv1.CustomResourceDefinition) // nil: the CRD is missing
		want                 DefinitionState
		lacking, stale, each bool // whether it is installed, by selection
		says                 string
	}{
		"missing":       {nil, DefinitionMissing, true, true, true, "would be created at revision"},
		"same revision": {revisionOf(crds.Revision()), DefinitionSame, false, false, true, "has revision"},
		"newer":         {revisionOf(crds.Revision() + 1), DefinitionNewer, false, false, false, "newer than this program's"},
		"newer, with more fields": {func(d *apiextensionsv1.CustomResourceDefinition) { revisionOf(99)(d); field(d, "new") },
			DefinitionNewer, false, false, false, "revision 99 is newer"},
		"of Karpenter": {foreign, DefinitionForeign, false, true, true, "was not installed by joiner"},
		"invalid revision": {func(d *apiextensionsv1.CustomResourceDefinition) { d.Annotations[crds.KeyRevision] = "x" },
			DefinitionForeign, false, true, true, "was not installed by joiner"},
		"with unknown fields": {func(d *apiextensionsv1.CustomResourceDefinition) { foreign(d); field(d, "flux") },
			DefinitionBeyond, false, false, false,
			"fields that this program does not know: spec.template.flux; objects would lose them"},
		"with an old stored version": {func(d *apiextensionsv1.CustomResourceDefinition) {
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

// TestOlderDefinition: the CRD of an older version is replaced.
func TestOlderDefinition(t *testing.T) {
	t.Parallel()
	s := DefinitionSeen{Name: "n", State: DefinitionOlder, Revision: crds.Revision() - 1}
	if !s.wanted(Stale, false) || s.wanted(Lacking, false) || s.Held() {
		t.Errorf("%+v is not brought as it should be", s)
	}
}

// TestUnknownFields: fields in lists and maps are found; a schema that keeps unknown fields has none.
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
