package kubeclient

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
)

// Scheme returns a new scheme with every kind that Joiner reads from or writes to the Kubernetes API: Kubernetes kinds
// and the kinds of Karpenter's two groups.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		corev1.AddToScheme(scheme),
		rbacv1.AddToScheme(scheme),
		appsv1.AddToScheme(scheme),
		batchv1.AddToScheme(scheme),
		eventsv1.AddToScheme(scheme),
		policyv1.AddToScheme(scheme),
		storagev1.AddToScheme(scheme),
		karpv1.AddToScheme(scheme),
		karpv1alpha1.AddToScheme(scheme),
		awsv1.AddToScheme(scheme),
	)
	return scheme, err
}

// IsNamespaced reports whether objects of the kind live in namespaces. The result is correct only for the kinds that
// manifest.Decoder decodes.
func IsNamespaced(object client.Object) bool {
	switch object.(type) {
	case *corev1.Node, *corev1.Namespace, *corev1.PersistentVolume, *storagev1.StorageClass, *storagev1.CSINode,
		*schedulingv1.PriorityClass, *nodev1.RuntimeClass, *karpv1.NodePool, *karpv1.NodeClaim, *awsv1.EC2NodeClass:
		return false
	}
	return true
}
