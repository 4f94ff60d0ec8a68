package kubeclient

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/joiner-sh/joiner/api/crds"
)

// TestCompareDefinitions: a CRD that is newer, or has unknown fields or versions, is not replaced; all other CRDs are.
func TestCompareDefinitions(t *testing.T) {
	t.Parallel()
	setRevision := func(n int) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(d *apiextensionsv1.CustomResourceDefinition) { d.Annotations[crds.KeyRevision] = strconv.Itoa(n) }
	}
	foreign := func(d *apiextensionsv1.CustomResourceDefinition) { delete(d.Annotations, crds.KeyRevision) }
	addField := func(d *apiextensionsv1.CustomResourceDefinition, name string) {
		spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		template := spec.Properties["template"]
		template.Properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	for name, c := range map[string]struct {
		change                 func(*apiextensionsv1.CustomResourceDefinition) // nil: the CRD is missing
		want                   DefinitionState
		missing, outdated, all bool   // whether SelectMissing, SelectOutdated and SelectAll install the CRD
		summary                string // part of the text
	}{
		"missing":       {nil, DefinitionMissing, true, true, true, "would be created at revision"},
		"same revision": {setRevision(crds.Revision()), DefinitionSame, false, false, true, "has revision"},
		"newer":         {setRevision(crds.Revision() + 1), DefinitionNewer, false, false, false, "newer than this program's"},
		"newer, with more fields": {func(d *apiextensionsv1.CustomResourceDefinition) { setRevision(99)(d); addField(d, "new") },
			DefinitionNewer, false, false, false, "revision 99 is newer"},
		"of Karpenter": {foreign, DefinitionForeign, false, true, true, "was not installed by joiner"},
		"invalid revision": {func(d *apiextensionsv1.CustomResourceDefinition) { d.Annotations[crds.KeyRevision] = "x" },
			DefinitionForeign, false, true, true, "was not installed by joiner"},
		"with unknown fields": {func(d *apiextensionsv1.CustomResourceDefinition) { foreign(d); addField(d, "flux") },
			DefinitionUnknownFields, false, false, false,
			"fields that this program does not know: spec.template.flux; objects would lose them"},
		"with an old stored version": {func(d *apiextensionsv1.CustomResourceDefinition) {
			foreign(d)
			d.Status.StoredVersions = []string{"v1beta1", "v1"}
		}, DefinitionUnknownVersions, false, false, false, "stored as v1beta1"},
	} {
		own, found := nodePoolDefinition(t), nodePoolDefinition(t)
		if c.change == nil {
			found = nil
		} else {
			c.change(found)
		}
		got := CompareDefinition(own, found)
		if got.State != c.want || !strings.Contains(got.Summary(), c.summary) {
			t.Errorf("%s: state %s, summary %q; want %s and a summary with %q", name, got.State, got.Summary(), c.want, c.summary)
		}
		if missing, outdated, all := got.isSelected(SelectMissing, false), got.isSelected(SelectOutdated, false),
			got.isSelected(SelectAll, false); missing != c.missing || outdated != c.outdated || all != c.all {
			t.Errorf("%s: installed by selection: %t %t %t, want %t %t %t", name, missing, outdated, all, c.missing, c.outdated, c.all)
		}
		if force := got.isSelected(SelectAll, true); force != (c.all || c.want == DefinitionUnknownFields) {
			t.Errorf("%s: installed with force: %t, want true if SelectAll installs it, or for unknown fields",
				name, force)
		}
	}
}

// TestOlderDefinition: a CRD with an older revision is selected with SelectOutdated, and not with SelectMissing.
func TestOlderDefinition(t *testing.T) {
	t.Parallel()
	s := DefinitionComparison{Name: "n", State: DefinitionOlder, Revision: crds.Revision() - 1}
	if !s.isSelected(SelectOutdated, false) || s.isSelected(SelectMissing, false) || s.NeedsUser() {
		t.Errorf("%+v must be selected by SelectOutdated only, and must not need the user", s)
	}
}

// TestUnknownFields: fields in lists and maps are found; a schema that keeps unknown fields has none.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	str := apiextensionsv1.JSONSchemaProps{Type: "string"}
	object := func(fields map[string]apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
		return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}
	}
	listOf := func(of *apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: of}}
	}
	mapOf := func(of *apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: of}}
	}
	all := object(nil)
	all.XPreserveUnknownFields = new(true)
	ours := object(map[string]apiextensionsv1.JSONSchemaProps{
		"a": str, "list": listOf(object(map[string]apiextensionsv1.JSONSchemaProps{"b": str})), "map": mapOf(object(nil)), "all": *all,
	})
	theirs := object(map[string]apiextensionsv1.JSONSchemaProps{
		"list": listOf(object(map[string]apiextensionsv1.JSONSchemaProps{"b": str, "c": str})),
		"map":  mapOf(object(map[string]apiextensionsv1.JSONSchemaProps{"d": str})),
		"all":  *object(map[string]apiextensionsv1.JSONSchemaProps{"e": str}),
	})
	if got, want := unknownFields(nil, "", ours, theirs), []string{"list[].c", "map{}.d"}; !slices.Equal(got, want) {
		t.Errorf("the unknown fields are %v, want %v", got, want)
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
