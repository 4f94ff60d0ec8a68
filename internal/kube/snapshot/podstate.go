package snapshot

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// podState has the pods of a state, each with its Node and its value for the solver.
type podState struct {
	references conversion.References          // the objects that pods refer to
	pods       map[client.ObjectKey]*podEntry // pods by namespace and name
	hosts      map[string]*host               // hosts by Node name; the Node itself may be missing
	revisions  uint64                         // counts the changes of all hosts

	waiting queue // the pods without a node: kube-scheduler could not bind them, or has nominated a node for them

	users            map[dependency]map[*podEntry]struct{} // by dependency: the pods whose values are computed from it
	staleSingleUsers map[string]bool                       // "namespace/name" of the volume claims whose only user refresh must find again
	traits           conversion.TraitSet                   // parts of pods' values that several pods share

	daemonPods      map[types.UID]map[*podEntry]struct{} // DaemonSet pods by UID of the DaemonSet
	newest          map[types.UID]*corev1.Pod            // the newest pod of each DaemonSet
	newestLost      map[types.UID]bool                   // the DaemonSets whose newest pod must be found again
	isNewestChanged bool                                 // a pod was added that is the newest of its DaemonSet
}

type podEntry struct {
	object *corev1.Pod
	// value is computed on first use, and again when a dependency has changed. For a pod on a node, value is an
	// element of cluster.Node.Pods.
	value  *cluster.Pod
	traits *conversion.SharedTraits // the parts of value that other pods share
	host   *host                    // nil if the pod is not bound
	queued queued                   // the pod's state in podState.waiting
}

type host struct {
	pods     []*podEntry // the bound pods, in no particular order
	revision uint64      // grows when one of the pods changes
}

func newPodState(references conversion.References) *podState {
	references.Volumes.Single = map[string]string{}
	return &podState{
		references: references,
		pods:       map[client.ObjectKey]*podEntry{}, hosts: map[string]*host{},
		users: map[dependency]map[*podEntry]struct{}{}, staleSingleUsers: map[string]bool{},
		daemonPods: map[types.UID]map[*podEntry]struct{}{}, newest: map[types.UID]*corev1.Pod{}, newestLost: map[types.UID]bool{},
	}
}

// valueOf returns the pod as the solver sees it. A value is replaced, but never changed.
func (s *podState) valueOf(p *podEntry) *cluster.Pod {
	if p.value == nil {
		value := conversion.PodValue(p.object, s.references)
		p.traits = s.traits.Share(&value, p.traits)
		p.value = &value
	}
	return p.value
}

func (s *podState) putPod(pod *corev1.Pod) {
	key := client.ObjectKeyFromObject(pod)
	p := s.pods[key]
	switch {
	case p == nil:
		p = &podEntry{}
		s.pods[key] = p
	case isSameVersion(p.object, pod):
		if set, ok := conversion.DaemonSetUID(pod); ok && s.newest[set] == p.object {
			s.newest[set] = pod
		}
		p.object = pod // releases the old object, which the informer no longer has
		return
	default:
		s.unplace(p)
	}
	p.object, p.value = pod, nil
	s.place(p)
}

func (s *podState) dropPod(pod *corev1.Pod) {
	key := client.ObjectKeyFromObject(pod)
	if p := s.pods[key]; p != nil {
		s.unplace(p)
		s.traits.Drop(p.traits)
		delete(s.pods, key)
	}
}

// isSameVersion reports whether a and b are the same version of an object. Informers report unchanged objects again:
// periodically, and after a reconnect.
func isSameVersion(a, b metav1.Object) bool {
	return a == b || a.GetUID() != "" && a.GetUID() == b.GetUID() &&
		a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion()
}

// place records the location of the pod, and its dependencies.
func (s *podState) place(p *podEntry) {
	pod := p.object
	for _, d := range s.dependencies(pod) {
		if s.users[d] == nil {
			s.users[d] = map[*podEntry]struct{}{}
		}
		s.users[d][p] = struct{}{}
		s.markSingleUser(d)
	}
	if set, ok := conversion.DaemonSetUID(pod); ok {
		if s.daemonPods[set] == nil {
			s.daemonPods[set] = map[*podEntry]struct{}{}
		}
		s.daemonPods[set][p] = struct{}{}
		if conversion.IsNewer(pod, s.newest[set]) {
			s.newest[set] = pod
			s.isNewestChanged = true
		}
	}
	switch {
	case conversion.IsFinished(pod):
	case pod.Spec.NodeName != "":
		h := s.hosts[pod.Spec.NodeName]
		if h == nil {
			h = &host{}
			s.hosts[pod.Spec.NodeName] = h
		}
		p.host = h
		h.pods = append(h.pods, p)
		h.revision = s.nextRevision()
	case conversion.Provisionable(pod) || conversion.IsNominated(pod):
		s.waiting.add(p)
	}
}

// unplace reverses place.
func (s *podState) unplace(p *podEntry) {
	pod := p.object
	for _, d := range s.dependencies(pod) {
		if delete(s.users[d], p); len(s.users[d]) == 0 {
			delete(s.users, d)
		}
		s.markSingleUser(d)
	}
	if set, ok := conversion.DaemonSetUID(pod); ok {
		if delete(s.daemonPods[set], p); len(s.daemonPods[set]) == 0 {
			delete(s.daemonPods, set)
		}
		if s.newest[set] == pod {
			s.newestLost[set] = true
		}
	}
	s.waiting.drop(p)
	if h := p.host; h != nil {
		i, last := slices.Index(h.pods, p), len(h.pods)-1
		h.pods[i], h.pods[last] = h.pods[last], nil
		h.pods, h.revision, p.host = h.pods[:last], s.nextRevision(), nil
		if last == 0 {
			delete(s.hosts, pod.Spec.NodeName)
		}
	}
}

// nextRevision returns a number that no host has had as its revision.
func (s *podState) nextRevision() uint64 {
	s.revisions++
	return s.revisions
}

func (s *podState) findNewest(set types.UID) {
	delete(s.newest, set)
	for p := range s.daemonPods[set] {
		if conversion.IsNewer(p.object, s.newest[set]) {
			s.newest[set] = p.object
		}
	}
}

// invalidate marks the values of all pods that depend on d, so that they are computed again.
func (s *podState) invalidate(d dependency) {
	for p := range s.users[d] {
		s.invalidatePod(p)
	}
}

func (s *podState) invalidatePod(p *podEntry) {
	p.value = nil
	if p.host != nil {
		p.host.revision = s.nextRevision()
	}
}

// markSingleUser marks the volume claim of d, if d is a dependency on one: refresh then finds its single user again.
// Only claims with the access mode ReadWriteOncePod have a single user.
func (s *podState) markSingleUser(d dependency) {
	if d.kind == onClaim {
		s.staleSingleUsers[d.name] = true
	}
}

// resolveSingleUser finds the only pod that may use the claim, if the claim's access mode is ReadWriteOncePod.
func (s *podState) resolveSingleUser(id string) {
	d := dependency{onClaim, id}
	user := ""
	if claim := s.references.Volumes.Claims[id]; claim != nil && conversion.IsReadWriteOncePod(claim) {
		o := Objects{VolumeClaims: []*corev1.PersistentVolumeClaim{claim}}
		for p := range s.users[d] {
			o.Pods = append(o.Pods, p.object)
		}
		user = singleUsersOf(o)[id]
	}
	if user == s.references.Volumes.Single[id] {
		return
	}
	s.references.Volumes.Single[id] = user
	if user == "" {
		delete(s.references.Volumes.Single, id)
	}
	s.invalidate(d)
}

// refresh finds the single user of each claim in staleSingleUsers, and the newest pod of each DaemonSet in newestLost.
// It reports whether the newest pod of any DaemonSet may have changed.
func (s *podState) refresh() (isNewestChanged bool) {
	for id := range s.staleSingleUsers {
		s.resolveSingleUser(id)
	}
	clear(s.staleSingleUsers)
	isNewestChanged = s.isNewestChanged || len(s.newestLost) > 0
	for set := range s.newestLost {
		s.findNewest(set)
	}
	clear(s.newestLost)
	s.isNewestChanged = false
	return isNewestChanged
}

// queue holds pods in order of their names. Adding and removing a pod does not sort the whole queue again.
type queue struct {
	pods       []*podEntry // sorted by namespace and name
	added      []*podEntry // added since the last call of sorted
	hasDropped bool        // pods or added has pods that are no longer queued
}

// queued is the state of a pod in a queue. in: it is queued. listed: queue.pods or queue.added has it. A dropped pod is
// listed until the next call of sorted.
type queued struct{ in, listed bool }

func (q *queue) add(p *podEntry) {
	p.queued.in = true
	if !p.queued.listed {
		p.queued.listed = true
		q.added = append(q.added, p)
	}
}

func (q *queue) drop(p *podEntry) {
	if p.queued.in {
		p.queued.in, q.hasDropped = false, true
	}
}

// sorted returns the queued pods in order of namespace and name.
func (q *queue) sorted() []*podEntry {
	if q.hasDropped {
		isGone := func(p *podEntry) bool {
			p.queued.listed = p.queued.in
			return !p.queued.in
		}
		q.pods, q.added = slices.DeleteFunc(q.pods, isGone), slices.DeleteFunc(q.added, isGone)
		q.hasDropped = false
	}
	if len(q.added) > 0 {
		slices.SortFunc(q.added, byEntryID)
		q.pods, q.added = merged(q.pods, q.added, byEntryID), nil
	}
	return q.pods
}

func byEntryID(a, b *podEntry) int {
	return cmp.Or(cmp.Compare(a.object.Namespace, b.object.Namespace), cmp.Compare(a.object.Name, b.object.Name))
}

func merged[T any](a, b []T, compare func(T, T) int) []T {
	out := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(b[0], a[0]) < 0 {
			out, b = append(out, b[0]), b[1:]
		} else {
			out, a = append(out, a[0]), a[1:]
		}
	}
	return append(append(out, a...), b...)
}
