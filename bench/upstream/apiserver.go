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

// apiServer is a minimal in-memory API server for upstream's controllers. Like an informer's cache, it returns copies.
// It collects upstream's writes, which Disruptor.apply later applies to the simulated fleet.
type apiServer struct {
	client.Client // nil: any other method panics

	mu     sync.Mutex
	pools  map[string]*v1.NodePool
	nodes  map[string]*corev1.Node
	claims map[string]*v1.NodeClaim
	pods   map[types.NamespacedName]*corev1.Pod
	byNode map[string]map[types.NamespacedName]*corev1.Pod // pods by name of their node; "" for pending pods
	count  int                                             // counter for resource versions and generated names

	created, deleted []*v1.NodeClaim // NodeClaims whose creation or deletion is not applied to the fleet yet
	patched          map[string]bool // names of nodes whose patches are not applied to the fleet yet
}

func newAPIServer() *apiServer {
	return &apiServer{
		pools: map[string]*v1.NodePool{}, nodes: map[string]*corev1.Node{}, claims: map[string]*v1.NodeClaim{},
		pods: map[types.NamespacedName]*corev1.Pod{}, byNode: map[string]map[types.NamespacedName]*corev1.Pod{}, patched: map[string]bool{},
	}
}

// Get finds nodes, NodeClaims and NodePools; any other object is not found.
func (s *apiServer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch into := into.(type) {
	case *corev1.Node:
		if n := s.nodes[key.Name]; n != nil {
			n.DeepCopyInto(into)
			return nil
		}
	case *v1.NodeClaim:
		if c := s.claims[key.Name]; c != nil {
			c.DeepCopyInto(into)
			return nil
		}
	case *v1.NodePool:
		if p := s.pools[key.Name]; p != nil {
			p.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List lists objects. Pods can be selected by spec.nodeName.
func (s *apiServer) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var o client.ListOptions
	o.ApplyOptions(opts)
	switch into := into.(type) {
	case *corev1.PodList:
		return s.listPods(into, o)
	case *corev1.NodeList:
		for _, n := range s.nodes {
			into.Items = append(into.Items, *n.DeepCopy())
		}
	case *v1.NodeClaimList:
		for _, c := range s.claims {
			into.Items = append(into.Items, *c.DeepCopy())
		}
	case *v1.NodePoolList:
		for _, p := range s.pools {
			into.Items = append(into.Items, *p.DeepCopy())
		}
	case *policyv1.PodDisruptionBudgetList, *appsv1.DaemonSetList: // there are none
	default:
		return fmt.Errorf("list %T: the benchmark has no such objects", into)
	}
	return nil
}

// listPods lists pods by namespace, labels and spec.nodeName, sorted by namespace and name. The caller holds mu.
func (s *apiServer) listPods(into *corev1.PodList, o client.ListOptions) error {
	from, selector := s.pods, o.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	if o.FieldSelector != nil {
		name, ok := o.FieldSelector.RequiresExactMatch("spec.nodeName")
		if !ok {
			return fmt.Errorf("list pods by %s: the benchmark has no such index", o.FieldSelector)
		}
		from = s.byNode[name]
	}
	keys := slices.SortedFunc(maps.Keys(from), compareKeys)
	into.Items = make([]corev1.Pod, 0, len(keys))
	for _, key := range keys {
		p := from[key]
		if (o.Namespace == "" || p.Namespace == o.Namespace) && selector.Matches(labels.Set(p.Labels)) {
			into.Items = append(into.Items, *p.DeepCopy())
		}
	}
	return nil
}

// Create accepts NodeClaims, and generates their names.
func (s *apiServer) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	c, ok := object.(*v1.NodeClaim)
	if !ok {
		return fmt.Errorf("create %T: the benchmark makes no such objects", object)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	c.Name = fmt.Sprintf("%snew%05d", c.GenerateName, s.count)
	c.UID = types.UID("uid-" + c.Name)
	s.stamp(c)
	s.claims[c.Name] = c.DeepCopy()
	s.created = append(s.created, c.DeepCopy())
	return nil
}

// Delete accepts NodeClaims. A deleted NodeClaim stays in the API server until the fleet has removed its instance.
func (s *apiServer) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[object.GetName()]
	if c == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, object.GetName())
	}
	s.deleted = append(s.deleted, c)
	return nil
}

// Patch accepts Nodes and NodeClaims. It stores the given object and ignores the patch.
func (s *apiServer) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := object.(type) {
	case *corev1.Node:
		s.stamp(o)
		s.nodes[o.Name] = o.DeepCopy()
		s.patched[o.Name] = true
	case *v1.NodeClaim:
		s.stamp(o)
		s.claims[o.Name] = o.DeepCopy()
	default:
		return fmt.Errorf("patch %T: the benchmark has no such objects", object)
	}
	return nil
}

// Status returns a writer whose Patch is that of apiServer.
func (s *apiServer) Status() client.SubResourceWriter { return statusWriter{server: s} }

// statusWriter implements only Patch. The embedded interface is nil, so that a call of another method panics.
type statusWriter struct {
	client.SubResourceWriter
	server *apiServer
}

// Patch is apiServer.Patch.
func (s statusWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.server.Patch(ctx, object, patch)
}

// stamp gives the object a new resource version. The caller holds mu.
func (s *apiServer) stamp(o metav1.Object) {
	s.count++
	o.SetResourceVersion(strconv.Itoa(s.count))
}

func (s *apiServer) setPod(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(p)
	s.forget(key)
	s.pods[key] = p
	if s.byNode[p.Spec.NodeName] == nil {
		s.byNode[p.Spec.NodeName] = map[types.NamespacedName]*corev1.Pod{}
	}
	s.byNode[p.Spec.NodeName][key] = p
}

func (s *apiServer) dropPod(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(client.ObjectKeyFromObject(p))
}

// forget deletes the pod from all maps. The caller holds mu.
func (s *apiServer) forget(key types.NamespacedName) {
	if old := s.pods[key]; old != nil {
		delete(s.byNode[old.Spec.NodeName], key)
		delete(s.pods, key)
	}
}
