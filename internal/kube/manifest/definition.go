package manifest

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apifield "k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/joiner-sh/joiner/api/crds"
)

// Definition is a compiled CustomResourceDefinition. It validates objects as an API server does.
type Definition struct {
	Structural *structuralschema.Structural // schema for defaults and pruning
	openAPI    validation.SchemaValidator   // checks objects against the schema
	rules      *cel.Validator               // checks objects against the CEL rules
}

// Definitions returns, by group and kind, a function for each CustomResourceDefinition of our API. The function
// compiles the definition in its first call only, because compiling the rules takes a while.
var Definitions = sync.OnceValues(func() (map[schema.GroupKind]func() (*Definition, error), error) {
	all, err := crds.Definitions()
	if err != nil {
		return nil, err
	}
	out := map[schema.GroupKind]func() (*Definition, error){}
	for _, crd := range all {
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		out[kind] = sync.OnceValues(func() (*Definition, error) { return compile(crd) })
	}
	return out, nil
})

// compile compiles the schema and the rules of the CRD's first version.
func compile(crd *apiextensionsv1.CustomResourceDefinition) (*Definition, error) {
	var props apiextensions.JSONSchemaProps
	from := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(from, &props, nil); err != nil {
		return nil, fmt.Errorf("compile %s: %w", crd.Name, err)
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", crd.Name, err)
	}
	openAPI, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", crd.Name, err)
	}
	return &Definition{structural, openAPI, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// Admit adds the defaults to an object, in place, and returns the errors that an API server would return when the
// object is created. It keeps unknown fields. It ignores the status, which an API server does not accept at creation.
func (d *Definition) Admit(object map[string]any) apifield.ErrorList {
	if status, ok := object["status"]; ok {
		delete(object, "status")
		defer func() { object["status"] = status }()
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.Structural)
	defaulting.Default(object, d.Structural)
	errs := validation.ValidateCustomResource(nil, object, d.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.Structural, object)...)
	if len(errs) > 0 {
		return errs // as in the API server, rules run only on objects that are valid by the schema
	}
	errs, _ = d.rules.Validate(context.Background(), nil, d.Structural, object, nil, celconfig.RuntimeCELCostBudget)
	return errs
}

// admit adds the defaults of the kind's definition, in place, and records the errors that an API server would return.
// It returns true if there are none. If there are errors, it records the typos first, because a field that seems to be
// missing may be misspelled. An object of a kind without a definition is not changed.
func (d *Decoder) admit(doc Document, gvk schema.GroupVersionKind, tree map[string]any, typos []typo) bool {
	all, err := Definitions()
	if err != nil {
		d.AddProblem(doc.File, doc.Line, "%s cannot be checked: %v", gvk.Kind, err)
		return false
	}
	compileKind, ok := all[gvk.GroupKind()]
	if !ok {
		return true
	}
	definition, err := compileKind()
	if err != nil {
		d.AddProblem(doc.File, doc.Line, "%s cannot be checked: %v", gvk.Kind, err)
		return false
	}
	var reported []string // paths: the API server reports an invalid amount twice, as a number and as a text
	errs := definition.Admit(tree)
	slices.SortStableFunc(errs, func(a, b *apifield.Error) int { // rules return errors in any order
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(emptyListRank(b), emptyListRank(a)), cmp.Compare(a.Detail, b.Detail))
	})
	var meant []string // paths of the fields that the misspelled fields probably mean
	if len(errs) > 0 {
		for _, t := range typos {
			d.AddProblem(doc.File, doc.lineOf(lastKey(t.path)+":", ""), "%s %s: %s", gvk.Kind, nameIn(tree), t.sentence())
			meant = append(meant, t.near)
		}
	}
	for _, e := range errs {
		if slices.Contains(reported, e.Field) || e.Type == apifield.ErrorTypeRequired && slices.Contains(meant, e.Field) {
			continue
		}
		reported = append(reported, e.Field)
		key, value := fieldKey(e.Field), FieldValue(e)
		line := doc.Line
		if key != "" {
			line = doc.lineOf(key, value)
		}
		d.AddProblem(doc.File, line, "%s %s is invalid: %s; correct it", gvk.Kind, nameIn(tree), Refusal(e, value))
	}
	return len(errs) == 0
}

// emptyListRank returns 1 for the error that a list needs an element, which causes the other errors of the field, and 0
// for other errors.
func emptyListRank(e *apifield.Error) int {
	if strings.HasPrefix(e.Detail, "give at least one") { // message of our CRDs
		return 1
	}
	return 0
}

// Refusal describes an error of a definition: the field, its value if it is short, and the cause.
func Refusal(e *apifield.Error, value string) string {
	var parts []string
	if e.Field != "" && e.Field != "<nil>" {
		parts = append(parts, e.Field)
	}
	const longest = 60
	switch _, isText := e.BadValue.(string); {
	case value == "" || len(value) > longest:
	case isText:
		parts = append(parts, strconv.Quote(value))
	default:
		parts = append(parts, value)
	}
	why := strings.TrimPrefix(e.Detail, e.Field+" in body ")
	if _, rule, ok := strings.Cut(why, " evaluating rule: "); ok {
		why = rule // the text before it says why the rule was not evaluated: a field is missing
	}
	if _, pattern, ok := strings.Cut(why, "should match '"); ok {
		why = patternText(e.Field, value, strings.TrimSuffix(pattern, "'"))
	}
	if near := meantLabel(value); near != "" && strings.HasPrefix(why, "labels under ") { // message of our CRDs
		why = "there is no such label (did you mean " + near + "?)"
	}
	switch e.Type {
	case apifield.ErrorTypeRequired:
		why = "is missing"
		if e.Detail != "" {
			why += " (" + e.Detail + ")"
		}
	case apifield.ErrorTypeNotSupported:
		why = "is not known, " + e.Detail
	case apifield.ErrorTypeTypeInvalid:
		why = strings.ReplaceAll(strings.Replace(why, ": ", ", not ", 1), `"`, "")
	case apifield.ErrorTypeDuplicate:
		why = "occurs twice"
	default:
	}
	return strings.Join(append(parts, why), ": ")
}

// fieldKey returns the last name of a path: "requirements" for spec.requirements[0].
func fieldKey(path string) string {
	for strings.HasSuffix(path, "]") {
		path = path[:strings.LastIndexByte(path, '[')]
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// FieldValue returns the invalid value; empty if it is not a string, number or boolean.
func FieldValue(e *apifield.Error) string {
	switch reflect.ValueOf(e.BadValue).Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
	default:
		return ""
	}
	switch {
	case e.Type == apifield.ErrorTypeTypeInvalid, e.BadValue == "object", e.BadValue == "array":
		return "" // the value is the name of a type
	case strings.HasSuffix(e.Detail, " items"), strings.HasSuffix(e.Detail, " chars long"):
		return "" // the value is the number of items or characters
	}
	return fmt.Sprint(e.BadValue)
}
