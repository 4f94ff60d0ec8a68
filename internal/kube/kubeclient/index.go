package kubeclient

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Names of the indexes that Index registers; for client.MatchingFields.
const (
	IndexPodNode        = "spec.nodeName"
	IndexPodRepels      = "joiner.repels" // "true" for a pod with required anti-affinity over domains larger than a node
	IndexNodeProvider   = "spec.providerID"
	IndexClaimProvider  = "status.providerID"
	IndexClaimClass     = "spec.nodeClassRef.name"
	IndexPoolClass      = "spec.template.spec.nodeClassRef.name"
	IndexAttachmentNode = "spec.nodeName"
)

// ClassName returns the name of the EC2NodeClass that ref names; empty if ref is nil.
func ClassName(ref *karpv1.NodeClassReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// Index registers the indexes by which objects are read from the cache.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		field  string
		value  func(client.Object) string
	}{
		{&corev1.Pod{}, IndexPodNode, func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName }},
		{&corev1.Pod{}, IndexPodRepels, func(o client.Object) string { return repels(o.(*corev1.Pod)) }},
		{&corev1.Node{}, IndexNodeProvider, func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID }},
		{&karpv1.NodeClaim{}, IndexClaimProvider, func(o client.Object) string { return o.(*karpv1.NodeClaim).Status.ProviderID }},
		{&karpv1.NodeClaim{}, IndexClaimClass, func(o client.Object) string {
			return ClassName(o.(*karpv1.NodeClaim).Spec.NodeClassRef)
		}},
		{&karpv1.NodePool{}, IndexPoolClass, func(o client.Object) string {
			return ClassName(o.(*karpv1.NodePool).Spec.Template.Spec.NodeClassRef)
		}},
		{&storagev1.VolumeAttachment{}, IndexAttachmentNode, func(o client.Object) string {
			return o.(*storagev1.VolumeAttachment).Spec.NodeName
		}},
	} {
		extract := func(o client.Object) []string {
			if value := index.value(o); value != "" {
				return []string{value}
			}
			return nil
		}
		if err := indexer.IndexField(ctx, index.object, index.field, extract); err != nil {
			return fmt.Errorf("index %s by %s: %w", KindOf(index.object), index.field, err)
		}
	}
	return nil
}

// repels returns the value of IndexPodRepels.
func repels(pod *corev1.Pod) string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return ""
	}
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if term.TopologyKey != corev1.LabelHostname {
			return "true"
		}
	}
	return ""
}
