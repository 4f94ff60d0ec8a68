package loop

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// NodeReader reads the Nodes of an instance, and the pods and volume attachments of a Node.
type NodeReader interface {
	NodesOf(ctx context.Context, providerID string) ([]*corev1.Node, error)
	PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error)
	AttachmentsOn(ctx context.Context, node string) ([]*storagev1.VolumeAttachment, error)
}

// ObjectWriter changes NodeClaims and Nodes.
type ObjectWriter interface {
	PatchClaim(ctx context.Context, claim *karpv1.NodeClaim, change func(*karpv1.NodeClaim)) (*karpv1.NodeClaim, error)
	PatchNode(ctx context.Context, node *corev1.Node, change func(*corev1.Node)) (*corev1.Node, error)
	Delete(ctx context.Context, object client.Object) error
}

// InstanceClient reads and terminates instances, and returns the tags of a launch.
type InstanceClient interface {
	Instance(ctx context.Context, id string) (ec2.Instance, error)
	Terminate(ctx context.Context, id string, proof ec2.Proof) error
	OwnershipTags(nodePool, nodeClass, claim string) map[string]string
}

// LiveReader reads from the API server, not from the cache.
type LiveReader interface {
	// PodsNow returns the pods that are bound to a Node, including finished ones.
	PodsNow(ctx context.Context, node string) ([]*corev1.Pod, error)
}

// EventRecorder emits events.
type EventRecorder interface {
	Emit(about client.Object, reason kubeclient.Reason, message string)
}
