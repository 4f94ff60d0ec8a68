package snapshot

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// state is the cluster as informers report it. It keeps computed values, so that the cost of a snapshot grows with the
// changes since the previous snapshot and not with the cluster. The snapshot of a state equals Objects.Snapshot of the
// same objects.
//
// An event stores its object and marks the values that depend on the object. A snapshot computes the marked values
// again. A value of a snapshot is never changed, only replaced; snapshots share equal values.
//
// snapshot, objects and currentClaims may be called concurrently. A snapshot sees all effects of an event or none.
type state struct {
	mu sync.Mutex // guards all fields

	view    View         // the view of the last snapshot; only Now changes
	pods    *podState    // the pods and their values
	volumes *volumeState // volume claims, volumes, storage classes and CSINodes
	nodes   *nodeState   // NodeClaims and Nodes, and the nodes of the snapshot

	pools        table[*karpv1.NodePool]
	classes      table[*awsv1.EC2NodeClass]
	daemonSets   table[*appsv1.DaemonSet]
	budgets      table[*policyv1.PodDisruptionBudget]
	namespaces   table[*corev1.Namespace]
	services     table[*corev1.Service]
	controllers  table[*corev1.ReplicationController]
	replicaSets  table[*appsv1.ReplicaSet]
	statefulSets table[*appsv1.StatefulSet]

	changed changes
}

// changes has the kinds of objects that have changed since the last snapshot. groups are those of conversion.Groups.
type changes struct{ namespaces, groups, budgets, daemonSets bool }

type table[T client.Object] map[client.ObjectKey]T

// put stores the object, and returns its previous version, if there is one.
func (t table[T]) put(object T) (before T, ok bool) {
	key := client.ObjectKeyFromObject(object)
	before, ok = t[key]
	t[key] = object
	return before, ok
}

// drop removes the object, and returns its last version, if there is one.
func (t table[T]) drop(object T) (before T, ok bool) {
	key := client.ObjectKeyFromObject(object)
	before, ok = t[key]
	delete(t, key)
	return before, ok
}

func (t table[T]) list() []T { return slices.Collect(maps.Values(t)) }

func newState(view View) *state {
	view.Live = true
	pods := newPodState(referencesOf(Objects{}, view))
	return &state{
		view: view, pods: pods, volumes: newVolumeState(pods), nodes: newNodeState(pods),

		pools: table[*karpv1.NodePool]{}, classes: table[*awsv1.EC2NodeClass]{}, daemonSets: table[*appsv1.DaemonSet]{},
		budgets: table[*policyv1.PodDisruptionBudget]{}, namespaces: table[*corev1.Namespace]{},
		services: table[*corev1.Service]{}, controllers: table[*corev1.ReplicationController]{},
		replicaSets: table[*appsv1.ReplicaSet]{}, statefulSets: table[*appsv1.StatefulSet]{},
	}
}

// feed has the functions that store and delete objects of one kind.
type feed struct {
	example   client.Object // an empty object of the kind
	put, drop func(client.Object)
}

func feedOf[T client.Object](example T, put, drop func(T)) feed {
	return feed{example, func(o client.Object) { put(o.(T)) }, func(o client.Object) { drop(o.(T)) }}
}

// tableFeed returns a feed that stores objects in a table. The feed calls changed after each change of the table.
func tableFeed[T client.Object](example T, t table[T], changed func()) feed {
	return feedOf(example, func(o T) {
		if before, ok := t.put(o); !ok || client.Object(before) != client.Object(o) {
			changed()
		}
	}, func(o T) { t.drop(o); changed() })
}

// feeds returns a feed for each kind of object that a snapshot is made from. The caller of put or drop must hold s.mu.
func (s *state) feeds() []feed {
	out := []feed{
		feedOf(&corev1.Node{}, s.nodes.putNode, s.nodes.dropNode),
		feedOf(&karpv1.NodeClaim{}, s.nodes.putClaim, s.nodes.dropClaim),
		feedOf(&storagev1.CSINode{}, s.volumes.putCSINode, s.volumes.dropCSINode),
		feedOf(&corev1.PersistentVolumeClaim{}, s.volumes.putVolumeClaim, s.volumes.dropVolumeClaim),
		feedOf(&corev1.PersistentVolume{}, s.volumes.putVolume, s.volumes.dropVolume),
		feedOf(&storagev1.StorageClass{}, s.volumes.putStorageClass, s.volumes.dropStorageClass),
		feedOf(&corev1.Namespace{}, s.putNamespace, s.dropNamespace),
		feedOf(&corev1.Pod{}, s.pods.putPod, s.pods.dropPod),
		tableFeed(&karpv1.NodePool{}, s.pools, func() {}),
		tableFeed(&awsv1.EC2NodeClass{}, s.classes, func() {}),
		tableFeed(&appsv1.DaemonSet{}, s.daemonSets, func() { s.changed.daemonSets = true }),
		tableFeed(&policyv1.PodDisruptionBudget{}, s.budgets, func() { s.changed.budgets = true }),
	}
	if s.view.DefaultSpread.IsZero() {
		return out
	}
	return append(out,
		feedOf(&corev1.Service{}, s.putService, s.dropService),
		feedOf(&corev1.ReplicationController{}, func(o *corev1.ReplicationController) {
			before, ok := s.controllers.put(o)
			s.ownerChanged("ReplicationController", o, ok && maps.Equal(before.Spec.Selector, o.Spec.Selector))
		}, func(o *corev1.ReplicationController) {
			s.controllers.drop(o)
			s.ownerChanged("ReplicationController", o, false)
		}),
		feedOf(&appsv1.ReplicaSet{}, func(o *appsv1.ReplicaSet) {
			before, ok := s.replicaSets.put(o)
			s.ownerChanged("ReplicaSet", o, ok && reflect.DeepEqual(before.Spec.Selector, o.Spec.Selector))
		}, func(o *appsv1.ReplicaSet) { s.replicaSets.drop(o); s.ownerChanged("ReplicaSet", o, false) }),
		feedOf(&appsv1.StatefulSet{}, func(o *appsv1.StatefulSet) {
			before, ok := s.statefulSets.put(o)
			s.ownerChanged("StatefulSet", o, ok && reflect.DeepEqual(before.Spec.Selector, o.Spec.Selector))
		}, func(o *appsv1.StatefulSet) { s.statefulSets.drop(o); s.ownerChanged("StatefulSet", o, false) }),
	)
}

// objects returns all objects of the state, in no particular order.
func (s *state) objects() Objects {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Objects{
		Pods:           make([]*corev1.Pod, 0, len(s.pods.pods)),
		Nodes:          slices.Collect(maps.Values(s.nodes.nodes)),
		DaemonSets:     s.daemonSets.list(),
		Pools:          s.pools.list(),
		Claims:         slices.Collect(maps.Values(s.nodes.claims)),
		Classes:        s.classes.list(),
		VolumeClaims:   slices.Collect(maps.Values(s.pods.references.Volumes.Claims)),
		Volumes:        slices.Collect(maps.Values(s.pods.references.Volumes.Volumes)),
		StorageClasses: slices.Collect(maps.Values(s.pods.references.Volumes.Classes)),
		Budgets:        s.budgets.list(),
		Namespaces:     s.namespaces.list(),
		CSINodes:       slices.Collect(maps.Values(s.volumes.csiNodes)),
		Groups:         s.groups(),
	}
	for _, p := range s.pods.pods {
		out.Pods = append(out.Pods, p.object)
	}
	return out
}

func (s *state) groups() conversion.Groups {
	return conversion.Groups{
		Services:     s.services.list(),
		Controllers:  s.controllers.list(),
		ReplicaSets:  s.replicaSets.list(),
		StatefulSets: s.statefulSets.list(),
	}
}

func (s *state) currentClaims() []*karpv1.NodeClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.nodes.claims))
}

// refresh updates the indexes from which the values of pods and nodes are computed. It updates only the indexes whose
// objects have changed since the last snapshot.
func (s *state) refresh() {
	c := s.changed
	if c.namespaces {
		s.pods.references.Namespaces = conversion.NewNamespaces(s.namespaces.list(), nil, true)
		s.pods.invalidate(dependency{kind: onNamespaces})
	}
	if c.groups {
		s.pods.references.Groups = conversion.NewPodSelectors(s.groups())
	}
	isNewestChanged := s.pods.refresh()
	if c.budgets {
		s.nodes.setBudgets(indexBudgets(s.budgets.list()))
	}
	if c.daemonSets || c.namespaces || isNewestChanged {
		s.nodes.setDaemons(conversion.Daemons(s.daemonSets.list(), s.pods.newest, s.pods.references))
	}
	s.changed = changes{}
}

func (s *state) builder() *builder {
	return &builder{view: s.view, references: s.pods.references, kinds: &s.nodes.kinds, budgets: s.nodes.budgets}
}

func (s *state) putNamespace(namespace *corev1.Namespace) {
	before, ok := s.namespaces.put(namespace)
	if !ok || !maps.Equal(before.Labels, namespace.Labels) {
		s.changed.namespaces = true
	}
}

func (s *state) dropNamespace(namespace *corev1.Namespace) {
	s.namespaces.drop(namespace)
	s.changed.namespaces = true
}

func (s *state) putService(service *corev1.Service) {
	before, ok := s.services.put(service)
	switch {
	case ok && maps.Equal(before.Spec.Selector, service.Spec.Selector):
	case ok:
		s.serviceChanged(before)
		s.serviceChanged(service)
	default:
		s.serviceChanged(service)
	}
}

func (s *state) dropService(service *corev1.Service) {
	if before, ok := s.services.drop(service); ok {
		s.serviceChanged(before)
	}
}

// serviceChanged marks the values of the pods that this version of the Service selects.
func (s *state) serviceChanged(service *corev1.Service) {
	s.changed.groups = true
	for p := range s.pods.users[dependency{onServices, service.Namespace}] {
		if conversion.SelectorMatches(service.Spec.Selector, p.object.Labels) {
			s.pods.invalidatePod(p)
		}
	}
}

// ownerChanged marks the values of the pods of a workload controller, unless the controller's selector is the same as
// before.
func (s *state) ownerChanged(kind string, owner metav1.Object, isSameSelector bool) {
	if !isSameSelector {
		s.changed.groups = true
		s.pods.invalidate(dependency{onOwner, conversion.OwnerKey(owner.GetNamespace(), kind, owner.GetName())})
	}
}
