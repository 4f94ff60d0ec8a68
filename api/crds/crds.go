// Package crds has the CustomResourceDefinitions of the API, ready to install.
//
// In: nothing; the YAML files in this folder are generated from api/karpenter and api/aws/v1.
// Out: the definitions, as YAML and as objects.
// Never: a definition edited by hand, or a call to an API server.
package crds

import (
	_ "embed"
	"fmt"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The commands generate the deep copies, and the CRDs from the markers of the types. Then they add the rules that
// markers cannot express, and a revision if the CRDs have changed.
//
//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen object paths=../karpenter/v1;../karpenter/v1alpha1;../aws/v1
//go:generate go tool -modfile=../../hack/tools/go.mod controller-gen crd paths=../karpenter/v1;../karpenter/v1alpha1;../aws/v1 output:crd:artifacts:config=.
//go:generate go run ./gen
//go:generate go test . -run TestRevision -rewrite

//go:embed karpenter.sh_nodepools.yaml
var nodePools string

//go:embed karpenter.sh_nodeclaims.yaml
var nodeClaims string

//go:embed karpenter.sh_nodeoverlays.yaml
var nodeOverlays string

//go:embed karpenter.k8s.aws_ec2nodeclasses.yaml
var ec2NodeClasses string

// Manifest is the YAML file of one CustomResourceDefinition.
type Manifest struct {
	// Name of the definition, for example nodepools.karpenter.sh.
	Name string
	// YAML is the text of the file: one document.
	YAML string
}

// Manifests returns the definitions as files, sorted by name.
func Manifests() []Manifest {
	return []Manifest{
		{Name: "ec2nodeclasses.karpenter.k8s.aws", YAML: ec2NodeClasses},
		{Name: "nodeclaims.karpenter.sh", YAML: nodeClaims},
		{Name: "nodeoverlays.karpenter.sh", YAML: nodeOverlays},
		{Name: "nodepools.karpenter.sh", YAML: nodePools},
	}
}

// Definitions returns the definitions as objects, sorted by name, each with the annotation KeyRevision. The caller
// may change them.
func Definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	manifests := Manifests()
	definitions := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(manifests))
	for _, manifest := range manifests {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict([]byte(manifest.YAML), definition); err != nil {
			return nil, fmt.Errorf("read definition %s: %w", manifest.Name, err)
		}
		metav1.SetMetaDataAnnotation(&definition.ObjectMeta, KeyRevision, strconv.Itoa(Revision()))
		definitions = append(definitions, definition)
	}
	return definitions, nil
}
