package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Version names this version of the group.
const Version = "v1alpha1"

// GroupVersion combines the group and Version for a runtime.Scheme.
var GroupVersion = schema.GroupVersion{Group: karpv1.Group, Version: Version}

// AddToScheme registers the kinds of this version in a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &NodeOverlay{}, &NodeOverlayList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
