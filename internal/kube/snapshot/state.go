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
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// state is the cluster as informers report it, kept so that the cost of a snapshot grows with the changes since the last one, not
// with the cluster. Its snapshot equals that of Objects.Snapshot for the same objects.
//
// An event stores its object and marks what depends on it. A snapshot computes marked values again. Values of a snapshot are never
// changed, only replaced; snapshots share equal values.
//
// Its methods may be called at the same time. Each event, and each snapshot, is
// whole: no snapshot sees half an event.
type state struct {
	mu sync.Mutex // guards all that follows

	view View // of the last snapshot; only Now and Market change
	roster
	fleet

	pools     table[*karpv1.NodePool]
	classes   table[*awsv1.EC2NodeClass]
	sets      table[*appsv1.DaemonSet]
	budgets   table[*policyv1.PodDisruptionBudget]
	spaces    table[*corev1.Namespace]
	services  table[*corev1.Service]
	managers  table[*corev1.ReplicationController]
	replicas  table[*appsv1.ReplicaSet]
	stateful  table[*appsv1.StatefulSet]
	bookings  map[string]map[string]bool // volume claims that name a volume, by volume: "namespace/name"
	attachers map[string]int             // nodes that limit how many volumes a driver attaches, by driver

	changed changes
}

// changes are what has to be made again before a snapshot can be.
type changes struct {
	spaces, groups, budgets, sets bool
	contested                     map[string]bool // volume claims whose only user may be another: "namespace/name"
}

// table is the objects of a kind.
type table[T client.Object] map[client.ObjectKey]T

// put returns the object that was there before.
func (t table[T]) put(object T) (before T, ok bool) {
	key := client.ObjectKeyFromObject(object)
	before, ok = t[key]
	t[key] = object
	return before, ok
}

func (t table[T]) drop(object T) (before T, ok bool) {
	key := client.ObjectKeyFromObject(object)
	before, ok = t[key]
	delete(t, key)
	return before, ok
}

func (t table[T]) list() []T { return slices.Collect(maps.Values(t)) }

// newState returns the state of a cluster without anything in it.
func newState(view View) *state {
	view.Live = true
	s := &state{
		view:   view,
		roster: newRoster(),
		fleet:  newFleet(),

		pools: table[*karpv1.NodePool]{}, classes: table[*awsv1.EC2NodeClass]{}, sets: table[*appsv1.DaemonSet]{},
		budgets: table[*policyv1.PodDisruptionBudget]{}, spaces: table[*corev1.Namespace]{},
		services: table[*corev1.Service]{}, managers: table[*corev1.ReplicationController]{},
		replicas: table[*appsv1.ReplicaSet]{}, stateful: table[*appsv1.StatefulSet]{},
		bookings: map[string]map[string]bool{}, attachers: map[string]int{},
		changed: changes{contested: map[string]bool{}},
	}
	s.around = referencesOf(Objects{}, view)
	s.around.Volumes.Single = map[string]string{}
	return s
}

// feed is a kind of object, and what is done when one of them has come or changed, or has gone.
type feed struct {
	like      client.Object
	put, drop func(client.Object)
}

func feedOf[T client.Object](like T, put, drop func(T)) feed {
	return feed{like, func(o client.Object) { put(o.(T)) }, func(o client.Object) { drop(o.(T)) }}
}

// noting is a feed that goes into its table, and note after it.
func noting[T client.Object](like T, t table[T], note func()) feed {
	return feedOf(like, func(o T) {
		if before, ok := t.put(o); !ok || client.Object(before) != client.Object(o) {
			note()
		}
	}, func(o T) { t.drop(o); note() })
}

// feeds are the kinds that a snapshot is made from. To call put and drop, hold s.mu.
func (s *state) feeds() []feed {
	out := []feed{
		feedOf(&corev1.Node{}, s.putNode, s.dropNode),
		feedOf(&karpv1.NodeClaim{}, s.putClaim, s.dropClaim),
		feedOf(&storagev1.CSINode{}, s.putDrivers, s.dropDrivers),
		feedOf(&corev1.PersistentVolumeClaim{}, s.putRequest, s.dropRequest),
		feedOf(&corev1.PersistentVolume{}, s.putVolume, s.dropVolume),
		feedOf(&storagev1.StorageClass{}, s.putStorage, s.dropStorage),
		feedOf(&corev1.Namespace{}, s.putSpace, s.dropSpace),
		feedOf(&corev1.Pod{}, s.putPod, s.dropPod),
		noting(&karpv1.NodePool{}, s.pools, func() {}),
		noting(&awsv1.EC2NodeClass{}, s.classes, func() {}),
		noting(&appsv1.DaemonSet{}, s.sets, func() { s.changed.sets = true }),
		noting(&policyv1.PodDisruptionBudget{}, s.budgets, func() { s.changed.budgets = true }),
	}
	if s.view.Usual.IsZero() {
		return out
	}
	return append(out,
		feedOf(&corev1.Service{}, s.putService, s.dropService),
		feedOf(&corev1.ReplicationController{}, func(o *corev1.ReplicationController) {
			before, ok := s.managers.put(o)
			s.regroup("ReplicationController", o, ok && maps.Equal(before.Spec.Selector, o.Spec.Selector))
		}, func(o *corev1.ReplicationController) {
			s.managers.drop(o)
			s.regroup("ReplicationController", o, false)
		}),
		feedOf(&appsv1.ReplicaSet{}, func(o *appsv1.ReplicaSet) {
			before, ok := s.replicas.put(o)
			s.regroup("ReplicaSet", o, ok && reflect.DeepEqual(before.Spec.Selector, o.Spec.Selector))
		}, func(o *appsv1.ReplicaSet) { s.replicas.drop(o); s.regroup("ReplicaSet", o, false) }),
		feedOf(&appsv1.StatefulSet{}, func(o *appsv1.StatefulSet) {
			before, ok := s.stateful.put(o)
			s.regroup("StatefulSet", o, ok && reflect.DeepEqual(before.Spec.Selector, o.Spec.Selector))
		}, func(o *appsv1.StatefulSet) { s.stateful.drop(o); s.regroup("StatefulSet", o, false) }),
	)
}

// objects returns all that the state knows, in no particular order.
func (s *state) objects() Objects {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Objects{
		Pods:           make([]*corev1.Pod, 0, len(s.pods)),
		Nodes:          slices.Collect(maps.Values(s.nodes)),
		DaemonSets:     s.sets.list(),
		Pools:          s.pools.list(),
		Claims:         slices.Collect(maps.Values(s.claims)),
		Classes:        s.classes.list(),
		VolumeClaims:   slices.Collect(maps.Values(s.around.Volumes.Claims)),
		Volumes:        slices.Collect(maps.Values(s.around.Volumes.Volumes)),
		StorageClasses: slices.Collect(maps.Values(s.around.Volumes.Classes)),
		Budgets:        s.budgets.list(),
		Namespaces:     s.spaces.list(),
		CSINodes:       slices.Collect(maps.Values(s.drivers)),
		Groups:         s.groups(),
	}
	for _, p := range s.pods {
		out.Pods = append(out.Pods, p.object)
	}
	return out
}

func (s *state) groups() conversion.Groups {
	return conversion.Groups{
		Services:     s.services.list(),
		Controllers:  s.managers.list(),
		ReplicaSets:  s.replicas.list(),
		StatefulSets: s.stateful.list(),
	}
}

// currentClaims returns the NodeClaims.
func (s *state) currentClaims() []*karpv1.NodeClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.claims))
}

// refresh computes again what pods and nodes depend on.
func (s *state) refresh() {
	c := &s.changed
	if c.spaces {
		s.around.Namespaces = conversion.NewNamespaces(s.spaces.list(), nil, true)
		s.touch(dependency{kind: onNamespaces})
	}
	if c.groups {
		s.around.Groups = conversion.NewPodSelectors(s.groups())
	}
	for id := range c.contested {
		s.settleUser(id)
	}
	if c.budgets {
		s.rules = budgetsOf(s.budgets.list())
		s.rulesTurn++
	}
	if c.sets || c.spaces || len(s.leaderless) > 0 {
		s.refreshDaemons()
	}
	clear(c.contested)
	s.changed = changes{contested: c.contested}
}

// refreshDaemons makes the DaemonSets again. Nodes have to be only if one of them is another.
func (s *state) refreshDaemons() {
	for set := range s.leaderless {
		s.findNewest(set)
	}
	clear(s.leaderless)
	if daemons := conversion.Daemons(s.sets.list(), s.newest, s.around); !reflect.DeepEqual(daemons, s.daemons) {
		s.daemons = daemons
		s.daemonsTurn++
	}
}

// builder returns what pods are counted with.
func (s *state) builder() *builder {
	return &builder{view: s.view, around: s.around, kinds: &s.kinds, budgets: s.rules}
}
