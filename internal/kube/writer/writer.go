package writer

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Writer changes the objects of the cluster. Every error that it returns can be passed to kubeclient.Classify.
type Writer struct {
	// Client writes to the API server; it may read from caches.
	Client client.Client
	// Ledger records every claim that is created. It is the ledger of the Reader; nil records nothing.
	Ledger *snapshot.Ledger
	// ClusterUID is the UID of the namespace kube-system. Claims get it as the annotation joiner.sh/cluster-uid; if
	// empty, claims get no such annotation.
	ClusterUID string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// CreateResult is the outcome for one planned NodeClaim: the created claim, or the error.
type CreateResult struct {
	Planned packing.PlannedNode // the planned node
	Claim   *karpv1.NodeClaim   // the created claim; nil if Err is set
	At      time.Time           // when the API server answered
	Err     error               // why the claim was not created
}

// parallelWrites is the maximum number of claims that are created at the same time. Creating a claim takes a few
// milliseconds, and creating a hundred claims should take less than a second.
const parallelWrites = 32

// CreateClaims creates the planned NodeClaims, and returns one outcome for each, in the same order. It first reads each
// pool again. If the pool is gone, is being deleted or has another node class, Classify returns Reread for the errors
// of its claims. If one claim fails, the others are still created.
func (w *Writer) CreateClaims(ctx context.Context, planned []packing.PlannedNode) []CreateResult {
	return w.createAll(ctx, planned, nil)
}

// CreateReplacements is like CreateClaims, for NodeClaims that replace other nodes. The new NodeClaims also get the
// annotations.
func (w *Writer) CreateReplacements(ctx context.Context, planned []packing.PlannedNode, annotations map[string]string) []CreateResult {
	return w.createAll(ctx, planned, annotations)
}

// createAll creates the claims with the annotations, which may be nil.
func (w *Writer) createAll(ctx context.Context, planned []packing.PlannedNode, annotations map[string]string) []CreateResult {
	out := make([]CreateResult, len(planned))
	pools := map[string]poolRead{}
	for i, node := range planned {
		out[i].Planned = node
		if _, ok := pools[node.Pool]; !ok {
			pools[node.Pool] = w.readPool(ctx, node.Pool)
		}
	}
	var wait sync.WaitGroup
	slots := make(chan struct{}, parallelWrites)
	for i := range out {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			out[i].Claim, out[i].Err = w.createClaim(ctx, out[i].Planned, pools[out[i].Planned.Pool], annotations)
			out[i].At = w.now()
		})
	}
	wait.Wait()
	return out
}

type poolRead struct {
	pool *karpv1.NodePool
	err  error
}

// readPool reads the NodePool. The error is ErrStale if the pool does not exist.
func (w *Writer) readPool(ctx context.Context, name string) poolRead {
	pool := &karpv1.NodePool{}
	err := w.Client.Get(ctx, client.ObjectKey{Name: name}, pool)
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: nodepool %s is gone", kubeclient.ErrStale, name)
	}
	return poolRead{pool, err}
}

// createClaim creates the NodeClaim of the planned node. read is the node's pool, from readPool.
func (w *Writer) createClaim(ctx context.Context, node packing.PlannedNode, read poolRead,
	annotations map[string]string) (*karpv1.NodeClaim, error) {
	if read.err != nil {
		return nil, fmt.Errorf("create nodeclaim of nodepool %s: %w", node.Pool, read.err)
	}
	claim, err := conversion.ClaimFor(node, read.pool)
	if err == nil {
		maps.Copy(claim.Annotations, annotations)
	}
	return w.create(ctx, node.Pool, claim, err)
}

// CreateStatic creates a NodeClaim for one more node of a static pool. It first reads the pool again.
func (w *Writer) CreateStatic(ctx context.Context, pool string) (*karpv1.NodeClaim, error) {
	return w.CreateStaticReplacement(ctx, pool, nil)
}

// CreateStaticReplacement is like CreateStatic, for a NodeClaim that replaces another node. The new NodeClaim also gets
// the annotations.
func (w *Writer) CreateStaticReplacement(ctx context.Context, pool string, annotations map[string]string) (*karpv1.NodeClaim, error) {
	read := w.readPool(ctx, pool)
	if read.err != nil {
		return nil, fmt.Errorf("create nodeclaim of nodepool %s: %w", pool, read.err)
	}
	claim, err := conversion.StaticClaimFor(read.pool)
	if err == nil {
		maps.Copy(claim.Annotations, annotations)
	}
	return w.create(ctx, pool, claim, err)
}

// create creates the claim. err is the error of making it: if set, create only returns err with the name of the pool.
func (w *Writer) create(ctx context.Context, pool string, claim *karpv1.NodeClaim, err error) (*karpv1.NodeClaim, error) {
	if err != nil {
		return nil, fmt.Errorf("create nodeclaim of nodepool %s: %w", pool, err)
	}
	if w.ClusterUID != "" {
		claim.Annotations[karpv1.KeyClusterUID] = w.ClusterUID
	}
	if err := w.Client.Create(ctx, claim); err != nil {
		return nil, fmt.Errorf("create nodeclaim of nodepool %s: %w", pool, err)
	}
	if w.Ledger != nil {
		w.Ledger.Record(w.now(), claim.DeepCopy())
	}
	return claim, nil
}

// PatchClaim applies change to a copy of claim, writes the difference, and returns the new object. Metadata and status
// are written only if they differ. A write that replaces a list (conditions, finalizers) fails if the object was
// changed since it was read.
func (w *Writer) PatchClaim(
	ctx context.Context, claim *karpv1.NodeClaim, change func(*karpv1.NodeClaim),
) (*karpv1.NodeClaim, error) {
	return kubeclient.PatchObject(ctx, w.Client, claim, change)
}

// PatchNode is PatchClaim for a Node: taints, labels, annotations, finalizer, owner.
func (w *Writer) PatchNode(
	ctx context.Context, node *corev1.Node, change func(*corev1.Node),
) (*corev1.Node, error) {
	return kubeclient.PatchObject(ctx, w.Client, node, change)
}

// PatchPool is PatchClaim for a NodePool: conditions, usage, hash.
func (w *Writer) PatchPool(
	ctx context.Context, pool *karpv1.NodePool, change func(*karpv1.NodePool),
) (*karpv1.NodePool, error) {
	return kubeclient.PatchObject(ctx, w.Client, pool, change)
}

// PatchOverlay is PatchClaim for a NodeOverlay: conditions.
func (w *Writer) PatchOverlay(
	ctx context.Context, overlay *karpv1alpha1.NodeOverlay, change func(*karpv1alpha1.NodeOverlay),
) (*karpv1alpha1.NodeOverlay, error) {
	return kubeclient.PatchObject(ctx, w.Client, overlay, change)
}

// PatchClass is PatchClaim for an EC2NodeClass.
func (w *Writer) PatchClass(
	ctx context.Context, class *awsv1.EC2NodeClass, change func(*awsv1.EC2NodeClass),
) (*awsv1.EC2NodeClass, error) {
	return kubeclient.PatchObject(ctx, w.Client, class, change)
}

// Delete deletes exactly this object, and not a later object with the same name. It is no error if the object is
// already gone.
func (w *Writer) Delete(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	err := w.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
	// The server answers a different UID with a conflict: the object is already gone.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete %s %s: %w", kubeclient.KindOf(object), object.GetName(), err)
}

func (w *Writer) now() time.Time {
	if w.Now == nil {
		return time.Now()
	}
	return w.Now()
}
