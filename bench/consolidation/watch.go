package consolidation

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
)

// informers passes the fleet's objects to Joiner's reader, as the cache of a controller-runtime manager does. A new
// handler receives all existing objects at once, and then every change.
type informers struct {
	fleet    *fleet.Fleet
	handlers map[reflect.Type][]toolscache.ResourceEventHandler
	classes  []*awsv1.EC2NodeClass
	nodes    map[string]*corev1.Node      // last version passed to the handlers, by name
	claims   map[string]*karpv1.NodeClaim // the same for NodeClaims
}

func newReader(f *fleet.Fleet) *snapshot.Reader {
	w := &informers{
		fleet: f, handlers: map[reflect.Type][]toolscache.ResourceEventHandler{},
		nodes: map[string]*corev1.Node{}, claims: map[string]*karpv1.NodeClaim{},
	}
	for _, p := range f.Pools {
		class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: p.Spec.Template.Spec.NodeClassRef.Name}}
		class.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionReady, Status: metav1.ConditionTrue, Reason: karpv1.ConditionReady}}
		w.classes = append(w.classes, class)
	}
	f.Watch = w
	return &snapshot.Reader{Informers: w}
}

// GetInformer returns the informer of the object's kind.
func (w *informers) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return &informer{informers: w, object: object}, nil
}

// InstanceChanged passes the instance's claim and node to the handlers.
func (w *informers) InstanceChanged(m *fleet.Instance) {
	claim := m.Claim()
	send(w, w.claims[m.Name], claim)
	w.claims[m.Name] = claim
	if n := m.Node(); n != nil {
		send(w, w.nodes[m.Name], n)
		w.nodes[m.Name] = n
	}
}

// InstanceGone reports the instance's claim and node as deleted.
func (w *informers) InstanceGone(m *fleet.Instance) {
	w.sendDeletion(w.claims[m.Name])
	if n := w.nodes[m.Name]; n != nil {
		w.sendDeletion(n)
	}
	delete(w.claims, m.Name)
	delete(w.nodes, m.Name)
}

// PodChanged passes a new or newly bound pod to the handlers, in both cases as created.
func (w *informers) PodChanged(p *fleet.Pod) { send(w, nil, p.Object) }

// PodGone passes the deletion of a pod to the handlers.
func (w *informers) PodGone(p *fleet.Pod) { w.sendDeletion(p.Object) }

// AfterEvent does nothing: the handlers already have every change.
func (w *informers) AfterEvent() {}

// send passes an object to the handlers of its kind: as created if before is nil, else as updated.
func send[T interface {
	comparable
	client.Object
}](w *informers, before, current T) {
	var absent T
	for _, h := range w.handlers[reflect.TypeOf(current)] {
		if before == absent {
			h.OnAdd(current, false)
		} else {
			h.OnUpdate(before, current)
		}
	}
}

func (w *informers) sendDeletion(o client.Object) {
	for _, h := range w.handlers[reflect.TypeOf(o)] {
		h.OnDelete(o)
	}
}

// informer is the informer of one kind. It has only the methods that snapshot.Reader calls.
type informer struct {
	cache.Informer
	informers *informers
	object    client.Object // any object of the kind
}

// AddEventHandler passes all existing objects to the handler, and every later change.
func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	kind := reflect.TypeOf(i.object)
	i.informers.handlers[kind] = append(i.informers.handlers[kind], h)
	objects := i.informers.fleet.Objects()
	switch i.object.(type) {
	case *corev1.Pod:
		sendExisting(h, objects.Pods)
	case *corev1.Node:
		for _, n := range objects.Nodes {
			i.informers.nodes[n.Name] = n
		}
		sendExisting(h, objects.Nodes)
	case *karpv1.NodeClaim:
		for _, c := range objects.Claims {
			i.informers.claims[c.Name] = c
		}
		sendExisting(h, objects.Claims)
	case *karpv1.NodePool:
		sendExisting(h, objects.Pools)
	case *awsv1.EC2NodeClass:
		sendExisting(h, i.informers.classes)
	}
	return registered{}, nil
}

// sendExisting passes the objects to a handler as those of the initial list.
func sendExisting[T client.Object](h toolscache.ResourceEventHandler, objects []T) {
	for _, o := range objects {
		h.OnAdd(o, true)
	}
}

// registered is the registration of a handler that has received all existing objects.
type registered struct{}

func (registered) HasSynced() bool                          { return true }
func (registered) HasSyncedChecker() toolscache.DoneChecker { return registered{} }
func (registered) Name() string                             { return "fleet" }
func (registered) Done() <-chan struct{}                    { return closed }

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
