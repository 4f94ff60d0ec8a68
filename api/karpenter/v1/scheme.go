package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version name this API group.
const (
	Group   = "karpenter.sh"
	Version = "v1"
)

// GroupVersion combines Group and Version for a runtime.Scheme.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme registers the kinds of this group in a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &NodePool{}, &NodePoolList{}, &NodeClaim{}, &NodeClaimList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
