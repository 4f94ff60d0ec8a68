package upstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// live is a minimal in-memory API server for upstream's controllers. Like an informer's cache it returns copies. It
// collects upstream's writes; this package's Disruptor applies them to the simulated fleet later.
type live struct {
	client.Client // nil: any other method panics

	mu     sync.Mutex
	pools  map[string]*v1.NodePool
	nodes  map[string]*corev1.Node
	claims map[string]*v1.NodeClaim
	pods   map[types.NamespacedName]*corev1.Pod
	byNode map[string]map[types.NamespacedName]*corev1.Pod // "" for pending pods
	number int                                             // of the last resource version or generated name

	created, deleted []*v1.NodeClaim // writes that are not applied to the fleet yet
	patched          map[string]bool // names of nodes with changes that are not applied to the fleet yet
}

// newLive returns a store without objects.
func newLive() *live {
	return &live{
		pools: map[string]*v1.NodePool{}, nodes: map[string]*corev1.Node{}, claims: map[string]*v1.NodeClaim{},
		pods: map[types.NamespacedName]*corev1.Pod{}, byNode: map[string]map[types.NamespacedName]*corev1.Pod{}, patched: map[string]bool{},
	}
}

// Get finds nodes, NodeClaims and NodePools; any other object is not found.
func (l *live) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch into := into.(type) {
	case *corev1.Node:
		if n := l.nodes[key.Name]; n != nil {
			n.DeepCopyInto(into)
			return nil
		}
	case *v1.NodeClaim:
		if c := l.claims[key.Name]; c != nil {
			c.DeepCopyInto(into)
			return nil
		}
	case *v1.NodePool:
		if p := l.pools[key.Name]; p != nil {
			p.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List lists objects. Pods can be selected by spec.nodeName.
func (l *live) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var o client.ListOptions
	o.ApplyOptions(opts)
	switch into := into.(type) {
	case *corev1.PodList:
		return l.listPods(into, o)
	case *corev1.NodeList:
		for _, n := range l.nodes {
			into.Items = append(into.Items, *n.DeepCopy())
		}
	case *v1.NodeClaimList:
		for _, c := range l.claims {
			into.Items = append(into.Items, *c.DeepCopy())
		}
	case *v1.NodePoolList:
		for _, p := range l.pools {
			into.Items = append(into.Items, *p.DeepCopy())
		}
	case *policyv1.PodDisruptionBudgetList, *appsv1.DaemonSetList:
	default:
		return fmt.Errorf("list %T: the benchmark has no such objects", into)
	}
	return nil
}

// listPods lists pods by namespace, labels and spec.nodeName, sorted by namespace and name. The caller holds mu.
func (l *live) listPods(into *corev1.PodList, o client.ListOptions) error {
	from, selector := l.pods, o.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	if o.FieldSelector != nil {
		name, ok := o.FieldSelector.RequiresExactMatch("spec.nodeName")
		if !ok {
			return fmt.Errorf("list pods by %s: the benchmark has no such index", o.FieldSelector)
		}
		from = l.byNode[name]
	}
	keys := slices.SortedFunc(maps.Keys(from), func(a, b types.NamespacedName) int { return compareKeys(a, b) })
	into.Items = make([]corev1.Pod, 0, len(keys))
	for _, key := range keys {
		p := from[key]
		if (o.Namespace == "" || p.Namespace == o.Namespace) && selector.Matches(labels.Set(p.Labels)) {
			into.Items = append(into.Items, *p.DeepCopy())
		}
	}
	return nil
}

// Create accepts NodeClaims.
func (l *live) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	c, ok := object.(*v1.NodeClaim)
	if !ok {
		return fmt.Errorf("create %T: the benchmark makes no such objects", object)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	c.Name = fmt.Sprintf("%snew%05d", c.GenerateName, l.number)
	c.UID = types.UID("uid-" + c.Name)
	l.stamp(c)
	l.claims[c.Name] = c.DeepCopy()
	l.created = append(l.created, c.DeepCopy())
	return nil
}

// Delete accepts NodeClaims.
func (l *live) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.claims[object.GetName()]
	if c == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, object.GetName())
	}
	l.deleted = append(l.deleted, c)
	return nil
}

// Patch stores the given object.
func (l *live) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch o := object.(type) {
	case *corev1.Node:
		l.stamp(o)
		l.nodes[o.Name] = o.DeepCopy()
		l.patched[o.Name] = true
	case *v1.NodeClaim:
		l.stamp(o)
		l.claims[o.Name] = o.DeepCopy()
	default:
		return fmt.Errorf("patch %T: the benchmark has no such objects", object)
	}
	return nil
}

// Status returns a writer that treats a status like any other field.
func (l *live) Status() client.SubResourceWriter { return liveStatus{live: l} }

// liveStatus implements only Patch. The embedded interface is nil, so that a call of another method panics.
type liveStatus struct {
	client.SubResourceWriter
	live *live
}

// Patch patches the object as live.Patch does.
func (s liveStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.live.Patch(ctx, object, patch)
}

// stamp gives the object a new resource version. The caller holds mu.
func (l *live) stamp(o metav1.Object) {
	l.number++
	o.SetResourceVersion(strconv.Itoa(l.number))
}

// setPod stores the pod with its current node.
func (l *live) setPod(p *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(p)
	l.forget(key)
	l.pods[key] = p
	if l.byNode[p.Spec.NodeName] == nil {
		l.byNode[p.Spec.NodeName] = map[types.NamespacedName]*corev1.Pod{}
	}
	l.byNode[p.Spec.NodeName][key] = p
}

// dropPod deletes a pod from the store.
func (l *live) dropPod(p *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(client.ObjectKeyFromObject(p))
}

// forget deletes the pod from all maps. The caller holds mu.
func (l *live) forget(key types.NamespacedName) {
	if old := l.pods[key]; old != nil {
		delete(l.byNode[old.Spec.NodeName], key)
		delete(l.pods, key)
	}
}
