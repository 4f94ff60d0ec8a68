package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version name this API group; Kind is the only kind of the group.
const (
	Group   = "karpenter.k8s.aws"
	Version = "v1"
	Kind    = "EC2NodeClass"
)

// GroupVersion combines Group and Version for a runtime.Scheme.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme registers the kinds of this group in a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &EC2NodeClass{}, &EC2NodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
