// Package conformance compares Joiner's API with Karpenter's: schemas, validation and defaults.
//
// In: CustomResourceDefinitions, Joiner's and those inside Karpenter's Go modules, and manifests.
// Out: the differences between two definitions, and the result of admitting a manifest with each of them.
// Never: a server; the API server's own packages are called directly.
package conformance

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// isResourceRoot: the schemas describe whole objects.
const isResourceRoot = true

// Definition admits objects as an API server with a CustomResourceDefinition would, including the validation ratcheting
// that is enabled since Kubernetes 1.30.
type Definition struct {
	structural *schema.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

// NewDefinition compiles a CustomResourceDefinition. It returns an error if the definition does not have exactly one
// version.
func NewDefinition(crd *apiextensionsv1.CustomResourceDefinition) (*Definition, error) {
	if len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("compile %s: want one version, have %d", crd.Name, len(crd.Spec.Versions))
	}
	var props apiextensions.JSONSchemaProps
	openAPIV3 := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(openAPIV3, &props, nil); err != nil {
		return nil, fmt.Errorf("compile %s: %w", crd.Name, err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", crd.Name, err)
	}
	if errs := schema.ValidateStructural(nil, structural); len(errs) > 0 {
		return nil, fmt.Errorf("compile %s: %w", crd.Name, errs.ToAggregate())
	}
	openAPI, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", crd.Name, err)
	}
	return &Definition{
		structural: structural,
		openAPI:    openAPI,
		rules:      cel.NewValidator(structural, isResourceRoot, celconfig.PerCallLimit),
	}, nil
}

// Read changes an object in place, as an API server changes an object that it receives from a client: Read drops
// unknown fields and sets defaults.
func (d *Definition) Read(object map[string]any) {
	pruning.Prune(object, d.structural, isResourceRoot)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.structural)
	defaulting.Default(object, d.structural)
}

// Create returns the validation errors of a new object. The caller must have called Read for the object.
func (d *Definition) Create(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, d.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	if len(errs) > 0 {
		return errs // as the API server does, evaluate rules only if the schema validation has succeeded
	}
	errs, _ = d.rules.Validate(ctx, nil, d.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return errs
}

// Update returns the validation errors of an object that replaces another. The caller must have called Read for both
// objects.
func (d *Definition) Update(ctx context.Context, object, old map[string]any) field.ErrorList {
	correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: d.structural})
	errs := validation.ValidateCustomResourceUpdate(nil, object, old, d.openAPI, validation.WithRatcheting(correlated))
	if len(listtype.ValidateListSetsAndMaps(nil, d.structural, old)) == 0 { // an invalid old list may stay invalid
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	}
	if len(errs) > 0 {
		return errs // as in Create
	}
	errs, _ = d.rules.Validate(ctx, nil, d.structural, object, old, celconfig.RuntimeCELCostBudget,
		cel.WithRatcheting(correlated))
	return errs
}
