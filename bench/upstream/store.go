package upstream

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/kube/snapshot"
)

// store is the API server for upstream's scheduler. It returns bound pods by namespace and labels, bound pods by node,
// and nodes by name, as copies like an informer's cache. It has no other objects.
type store struct {
	client.Client // nil: any other method panics

	pods   []*corev1.Pod            // bound pods
	byNode map[string][]*corev1.Pod // bound pods by name of their node
	nodes  map[string]*corev1.Node
}

func newStore(o snapshot.Objects) *store {
	s := &store{byNode: map[string][]*corev1.Pod{}, nodes: map[string]*corev1.Node{}}
	for _, n := range o.Nodes {
		s.nodes[n.Name] = n
	}
	for _, p := range o.Pods {
		if p.Spec.NodeName != "" {
			s.pods = append(s.pods, p)
			s.byNode[p.Spec.NodeName] = append(s.byNode[p.Spec.NodeName], p)
		}
	}
	return s
}

// Get finds nodes; any other object is not found.
func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if node, ok := into.(*corev1.Node); ok && s.nodes[key.Name] != nil {
		s.nodes[key.Name].DeepCopyInto(node)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List finds bound pods. It returns no pending pods, which are the input of the plan.
func (s *store) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	list, ok := into.(*corev1.PodList)
	if !ok {
		return fmt.Errorf("list %T: the benchmark has no such objects", into)
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
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
	list.Items = nil
	for _, p := range from {
		if (o.Namespace == "" || p.Namespace == o.Namespace) && selector.Matches(labels.Set(p.Labels)) {
			list.Items = append(list.Items, *p.DeepCopy())
		}
	}
	return nil
}
