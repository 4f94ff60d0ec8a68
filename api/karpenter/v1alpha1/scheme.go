package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Version names this version of the group.
const Version = "v1alpha1"

// GroupVersion is group and version in the shape that the Kubernetes machinery asks for.
var GroupVersion = schema.GroupVersion{Group: karpv1.Group, Version: Version}

// AddToScheme makes the kinds of this version known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &NodeOverlay{}, &NodeOverlayList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
