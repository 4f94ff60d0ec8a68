package conformance

import (
	"testing"

	apis "github.com/aws/karpenter-provider-aws/pkg/apis"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	coreapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/joiner-sh/joiner/api/crds"
)

const (
	schemaPath   = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties."
	poolTemplate = schemaPath + "template.properties."
)

// deliberateDifferences lists the intended differences, with their reasons. TestBehaviour checks that they do not
// change which objects are accepted.
var deliberateDifferences = map[string]map[string]string{
	"ec2nodeclasses.karpenter.k8s.aws": {
		schemaPath + "kubelet.x-kubernetes-preserve-unknown-fields": "" +
			"Karpenter's next version accepts every kubelet setting; the class's conditions report invalid ones",
	},
	"nodepools.karpenter.sh": {
		poolTemplate + "spec.properties.requirements.items.properties.values.maxLength": "" +
			"the schema is that of a list, for which maxLength has no effect",
		poolTemplate + "spec.properties.requirements.items.properties.values.pattern": "" +
			"the schema is that of a list, for which pattern has no effect",
		poolTemplate + "metadata.properties.labels.x-kubernetes-validations[3].rule": "" +
			"Karpenter's rule lists karpenter.k8s.aws/capacity-reservation-interruptible twice",
	},
	"nodeoverlays.karpenter.sh": {
		schemaPath + "requirements.items.properties.values.maxLength": "" +
			"the schema is that of a list, for which maxLength has no effect",
		schemaPath + "requirements.items.properties.values.pattern": "" +
			"the schema is that of a list, for which pattern has no effect",
	},
	"nodeclaims.karpenter.sh": {
		schemaPath + "requirements.items.properties.values.maxLength": "" +
			"the schema is that of a list, for which maxLength has no effect",
		schemaPath + "requirements.items.properties.values.pattern": "" +
			"the schema is that of a list, for which pattern has no effect",
	},
}

type pair struct {
	ours, theirs *apiextensionsv1.CustomResourceDefinition
}

// pairs returns the definitions by name. Karpenter's are those of its AWS provider, which adds rules to the definitions
// of Karpenter's core.
func pairs(t *testing.T) map[string]pair {
	t.Helper()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]pair{}
	for _, ours := range definitions {
		byName[ours.Name] = pair{ours: ours}
	}
	for _, theirs := range apis.CRDs {
		if p, ok := byName[theirs.Name]; ok {
			p.theirs = theirs
			byName[theirs.Name] = p
		}
	}
	for _, name := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh",
		"ec2nodeclasses.karpenter.k8s.aws"} {
		if p := byName[name]; p.ours == nil || p.theirs == nil {
			t.Fatalf("%s: ours %t, theirs %t: want both", name, p.ours != nil, p.theirs != nil)
		}
	}
	return byName
}

// TestStructure compares names, scopes, printer columns, subresources, and schemas with their validation rules. It
// allows only the deliberate differences.
func TestStructure(t *testing.T) {
	t.Parallel()
	for name, pair := range pairs(t) {
		differences, err := Compare(pair.ours, pair.theirs)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, difference := range differences {
			seen[difference.Path] = true
			if _, ok := deliberateDifferences[name][difference.Path]; !ok {
				t.Errorf("%s: want no difference, got %s", name, difference)
			}
		}
		for path := range deliberateDifferences[name] {
			if !seen[path] {
				t.Errorf("%s: %s is listed as a deliberate difference, but does not differ: remove it from the list", name, path)
			}
		}
	}
}

// TestStructureOfCore compares Joiner's definitions with those of Karpenter's core, which is independent of the cloud.
// Besides the deliberate differences, only the rules about labels of karpenter.k8s.aws may differ (awsRules).
func TestStructureOfCore(t *testing.T) {
	t.Parallel()
	const keys = "requirements.items.properties.key.x-kubernetes-validations"
	awsRules := map[string]bool{
		poolTemplate + "metadata.properties.labels.x-kubernetes-validations[3]": true,
		poolTemplate + "spec.properties." + keys + "[3]":                        true,
		schemaPath + keys + "[2]":                                               true,
	}
	all := pairs(t)
	found := 0
	for _, theirs := range coreapis.CRDs {
		pair, ok := all[theirs.Name]
		if !ok {
			continue // CapacityBuffer, which Joiner does not serve yet
		}
		found++
		differences, err := Compare(pair.ours, theirs)
		if err != nil {
			t.Fatal(err)
		}
		for _, difference := range differences {
			if _, ok := deliberateDifferences[theirs.Name][difference.Path]; !ok && !awsRules[difference.Path] {
				t.Errorf("%s: want no difference, got %s", theirs.Name, difference)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d definitions of the core compared, want 3: NodePool, NodeClaim and NodeOverlay", found)
	}
}

// TestCompare checks that Compare finds a difference of each kind, and ignores descriptions.
func TestCompare(t *testing.T) {
	t.Parallel()
	weightSchema := func(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		prop := spec.Properties["weight"]
		return &prop
	}
	tests := map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   []string
	}{
		"no change": {change: func(*apiextensionsv1.CustomResourceDefinition) {}},
		"description": {change: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "other words"
		}},
		"short name": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.ShortNames = []string{"np"} },
			want:   []string{"spec.names.shortNames"},
		},
		"printer column": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions[0].AdditionalPrinterColumns[0].JSONPath = ".x"
			},
			want: []string{"spec.versions[0].additionalPrinterColumns[0].jsonPath"},
		},
		"subresource": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Subresources.Scale = nil },
			want:   []string{"spec.versions[0].subresources.scale"},
		},
		"maximum": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				prop := weightSchema(crd)
				prop.Maximum = new(99.0)
				crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["weight"] = *prop
			},
			want: []string{schemaPath + "weight.maximum"},
		},
		"missing property": {
			change: func(crd *apiextensionsv1.CustomResourceDefinition) {
				delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "weight")
			},
			want: []string{schemaPath + "weight"},
		},
	}
	ours := pairs(t)["nodepools.karpenter.sh"].ours
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := ours.DeepCopy()
			test.change(changed)
			differences, err := Compare(changed, ours)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, difference := range differences {
				got = append(got, difference.Path)
			}
			if len(got) != len(test.want) || len(got) > 0 && got[0] != test.want[0] {
				t.Errorf("differences at %q, want %q", got, test.want)
			}
		})
	}
}
