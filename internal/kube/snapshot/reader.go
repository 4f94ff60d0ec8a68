package snapshot

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// Reader reads the cluster from informers' caches without copying: callers must not change the returned objects. Its
// methods may be called concurrently.
type Reader struct {
	// Cache reads from informers. It is the manager's client or cache, with the indexes of kubeclient.Index.
	Cache client.Reader
	// Informers report changes, so that a snapshot need not list all objects. It is the manager's cache. If nil, each
	// snapshot lists the objects of Cache.
	Informers Informers
	// Live reads from the API server. It is used for claims that the cache does not show in time, and by PodsNow. If
	// nil, such claims are assumed to exist.
	Live client.Reader
	// Ledger holds the claims that the Writer created. Nil: claims that the cache lacks are ignored.
	Ledger *Ledger

	// DefaultSpread, IgnorePreferences and RelaxMinValues are copied to the View of each snapshot.
	DefaultSpread     conversion.DefaultSpread
	IgnorePreferences bool
	RelaxMinValues    bool

	follower follower
}

// Snapshot returns the cluster at the time now. The market has the instance types of claims that have no instance yet;
// it may be nil. With Informers, the first call waits up to 10 seconds for their initial lists. If lists are still
// missing then, the error names their kinds.
func (r *Reader) Snapshot(ctx context.Context, now time.Time, market catalog.Market) (cluster.Snapshot, error) {
	view := View{
		Now:               now,
		Live:              true,
		Market:            market,
		DefaultSpread:     r.DefaultSpread,
		IgnorePreferences: r.IgnorePreferences,
		RelaxMinValues:    r.RelaxMinValues,
	}
	if r.Informers == nil {
		objects, err := r.listObjects(ctx)
		if err != nil {
			return cluster.Snapshot{}, err
		}
		late, err := r.lateClaims(ctx, now, objects.Claims)
		if err != nil {
			return cluster.Snapshot{}, err
		}
		objects.Claims = append(objects.Claims, late...)
		return objects.Snapshot(view), nil
	}
	state, err := r.follow(ctx)
	if err != nil {
		return cluster.Snapshot{}, err
	}
	late, err := r.lateClaims(ctx, now, state.currentClaims())
	if err != nil {
		return cluster.Snapshot{}, err
	}
	return state.snapshot(now, market, late), nil
}

// Objects returns all objects that a snapshot is made from, as the cache holds them.
func (r *Reader) Objects(ctx context.Context) (Objects, error) {
	if r.Informers == nil {
		return r.listObjects(ctx)
	}
	state, err := r.follow(ctx)
	if err != nil {
		return Objects{}, err
	}
	return state.objects(), nil
}

func (r *Reader) listObjects(ctx context.Context) (Objects, error) {
	var out Objects
	var (
		pods           corev1.PodList
		nodes          corev1.NodeList
		daemonSets     appsv1.DaemonSetList
		pools          karpv1.NodePoolList
		claims         karpv1.NodeClaimList
		classes        awsv1.EC2NodeClassList
		volumeClaims   corev1.PersistentVolumeClaimList
		volumes        corev1.PersistentVolumeList
		storageClasses storagev1.StorageClassList
		budgets        policyv1.PodDisruptionBudgetList
		namespaces     corev1.NamespaceList
		csiNodes       storagev1.CSINodeList
		lists          = []client.ObjectList{
			// Nodes are listed before pods. If a pod is bound to a new Node in between, the pod seems to have no
			// node, and the plan may have one node too many. In the other order, the Node would seem to have room that
			// the pod uses, and the plan would use the room again.
			&nodes, &claims, &pods, &daemonSets, &pools, &classes, &volumeClaims, &volumes, &storageClasses, &budgets,
			&namespaces, &csiNodes,
		}
	)
	for _, list := range lists {
		if err := r.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return Objects{}, fmt.Errorf("list objects of kind %s: %w", kindOfList(list), err)
		}
	}
	out.Pods = pointers(pods.Items)
	out.Nodes = pointers(nodes.Items)
	out.DaemonSets = pointers(daemonSets.Items)
	out.Pools = pointers(pools.Items)
	out.Claims = pointers(claims.Items)
	out.Classes = pointers(classes.Items)
	out.VolumeClaims = pointers(volumeClaims.Items)
	out.Volumes = pointers(volumes.Items)
	out.StorageClasses = pointers(storageClasses.Items)
	out.Budgets = pointers(budgets.Items)
	out.Namespaces = pointers(namespaces.Items)
	out.CSINodes = pointers(csiNodes.Items)
	var err error
	if !r.DefaultSpread.IsZero() {
		out.Groups, err = r.groups(ctx)
	}
	return out, err
}

// lateClaims returns the claims of the ledger that are missing in claims although the API server has them. It asks the
// server only about claims that the cache should have by now.
func (r *Reader) lateClaims(ctx context.Context, now time.Time, claims []*karpv1.NodeClaim) ([]*karpv1.NodeClaim, error) {
	if r.Ledger == nil {
		return nil, nil
	}
	late, overdue := r.Ledger.updateFromCache(now, claims)
	for _, c := range overdue {
		exists, err := r.exists(ctx, c)
		switch {
		case err != nil:
			return nil, fmt.Errorf("look for nodeclaim %s: %w", c.Name, err)
		case exists:
			late = append(late, c)
		default:
			// The claim was deleted before the cache had it, so no informer event will report it.
			r.Ledger.Forget(c.UID)
		}
	}
	return late, nil
}

// exists reports whether the API server has the claim. Without Live it returns true.
func (r *Reader) exists(ctx context.Context, c *karpv1.NodeClaim) (bool, error) {
	if r.Live == nil {
		return true, nil
	}
	var found karpv1.NodeClaim
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(c), &found)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && found.UID == c.UID, err
}

// NodesOf returns the Nodes with an instance's provider ID; none before the instance has joined. Any kubelet can set
// this ID, so callers check each Node with IsNodeOf.
func (r *Reader) NodesOf(ctx context.Context, providerID string) ([]*corev1.Node, error) {
	if providerID == "" {
		return nil, nil
	}
	var list corev1.NodeList
	err := r.Cache.List(ctx, &list, client.MatchingFields{kubeclient.IndexNodeProvider: providerID}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list nodes of %s: %w", providerID, err)
	}
	return pointers(list.Items), nil
}

// IsNodeOf reports whether the claim was registered with the Node. The provider ID alone proves nothing, because any
// kubelet can set any provider ID. A claim that is not registered has no Node.
func IsNodeOf(claim *karpv1.NodeClaim, node *corev1.Node) bool {
	return node != nil && claim.Status.ProviderID != "" && node.Spec.ProviderID == claim.Status.ProviderID &&
		node.Name == claim.Status.NodeName
}

// ClaimsOf returns the NodeClaims with an instance's provider ID.
func (r *Reader) ClaimsOf(ctx context.Context, providerID string) ([]*karpv1.NodeClaim, error) {
	if providerID == "" {
		return nil, nil
	}
	var list karpv1.NodeClaimList
	byProvider := client.MatchingFields{kubeclient.IndexClaimProvider: providerID}
	err := r.Cache.List(ctx, &list, byProvider, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list nodeclaims of %s: %w", providerID, err)
	}
	return pointers(list.Items), nil
}

// PodsOn returns the pods bound to a Node, including finished pods.
func (r *Reader) PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	err := r.Cache.List(ctx, &list, client.MatchingFields{kubeclient.IndexPodNode: node}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list pods on node %s: %w", node, err)
	}
	return pointers(list.Items), nil
}

// PodsNow is like PodsOn, but reads from the API server instead of the cache. Live must be set.
func (r *Reader) PodsNow(ctx context.Context, node string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.Live.List(ctx, &list, client.MatchingFields{kubeclient.IndexPodNode: node}); err != nil {
		return nil, fmt.Errorf("list pods on node %s: %w", node, err)
	}
	return pointers(list.Items), nil
}

// AttachmentsOn returns the VolumeAttachments of a Node.
func (r *Reader) AttachmentsOn(ctx context.Context, node string) ([]*storagev1.VolumeAttachment, error) {
	var list storagev1.VolumeAttachmentList
	err := r.Cache.List(ctx, &list, client.MatchingFields{kubeclient.IndexAttachmentNode: node}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list volume attachments of node %s: %w", node, err)
	}
	return pointers(list.Items), nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// kindOfList returns the kind of the objects in the list, for a message: "Pod".
func kindOfList(list client.ObjectList) string {
	_, name, _ := strings.Cut(fmt.Sprintf("%T", list), ".")
	return strings.TrimSuffix(name, "List")
}

// groups lists the objects that View.DefaultSpread needs.
func (r *Reader) groups(ctx context.Context) (conversion.Groups, error) {
	var (
		services    corev1.ServiceList
		controllers corev1.ReplicationControllerList
		replicas    appsv1.ReplicaSetList
		stateful    appsv1.StatefulSetList
	)
	for _, list := range []client.ObjectList{&services, &controllers, &replicas, &stateful} {
		if err := r.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return conversion.Groups{}, fmt.Errorf("list objects of kind %s: %w", kindOfList(list), err)
		}
	}
	return conversion.Groups{
		Services:     pointers(services.Items),
		Controllers:  pointers(controllers.Items),
		ReplicaSets:  pointers(replicas.Items),
		StatefulSets: pointers(stateful.Items),
	}, nil
}
