package main

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestEdit checks that a rule can change properties, items of lists and values of maps, and that an unknown path is an
// error.
func TestEdit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path      string
		wantError string
	}{
		"property":         {path: "spec"},
		"items":            {path: "spec.list.[].name"},
		"values":           {path: "spec.map.{}"},
		"unknown property": {path: "spec.gone", wantError: `no "gone"`},
		"items of a map":   {path: "spec.map.[]", wantError: `no "[]"`},
		"values of a list": {path: "spec.list.{}", wantError: `no "{}"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := apiextensionsv1.JSONSchemaProps{Type: "string"}
			item := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": text}}
			schema := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"list": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}},
					"map":  {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &text}},
				}},
			}}
			path := strings.Split(test.path, ".")
			err := edit(&schema, path, pattern("^x$"))
			if test.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantError) {
					t.Fatalf("error %v, want one with %s", err, test.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if err := edit(&schema, path, func(s *apiextensionsv1.JSONSchemaProps) { got = s.Pattern }); err != nil {
				t.Fatal(err)
			}
			if got != "^x$" {
				t.Errorf("pattern %q, want ^x$", got)
			}
		})
	}
}
