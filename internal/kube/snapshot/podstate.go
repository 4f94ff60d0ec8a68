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

// podState is the pods of a state: the Node of each pod, and its value for the engine.
type podState struct {
	around conversion.References
	pods   map[client.ObjectKey]*podEntry
	hosts  map[string]*host // by Node name; the Node itself may be missing
	turns  uint64           // counts the changes of all hosts

	waiting queue // the pods without a node that kube-scheduler tried and could not bind, or nominated for a node

	users     map[dependency]map[*podEntry]struct{} // the pods whose value is computed from a dependency
	contested map[string]bool                       // volume claims whose only user may have changed: "namespace/name"
	traits    conversion.TraitSet

	daemonPods      map[types.UID]map[*podEntry]struct{} // by UID of the DaemonSet
	newest          map[types.UID]*corev1.Pod            // the newest pod of each DaemonSet
	leaderless      map[types.UID]bool                   // the DaemonSets whose newest pod was changed or deleted
	isNewestChanged bool                                 // a pod was added that is the newest of its DaemonSet
}

// podEntry is one pod.
type podEntry struct {
	object *corev1.Pod
	// value is computed on first use, and again when a dependency has changed. For a pod that is on a node it points into that node's Pods.
	value  *cluster.Pod
	traits *conversion.SharedTraits // what value shares with others
	host   *host                    // nil if it is on no Node
	queued queued
}

// host is the pods on one Node.
type host struct {
	pods []*podEntry // in no particular order
	turn uint64      // goes up when one of them changes
}

func newPodState(around conversion.References) *podState {
	around.Volumes.Single = map[string]string{}
	return &podState{
		around: around,
		pods:   map[client.ObjectKey]*podEntry{}, hosts: map[string]*host{},
		users: map[dependency]map[*podEntry]struct{}{}, contested: map[string]bool{},
		daemonPods: map[types.UID]map[*podEntry]struct{}{}, newest: map[types.UID]*corev1.Pod{}, leaderless: map[types.UID]bool{},
	}
}

// valueOf returns the pod as the engine sees it. It is never altered.
func (s *podState) valueOf(p *podEntry) *cluster.Pod {
	if p.value == nil {
		value := conversion.PodValue(p.object, s.around)
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
		p.object = pod // and release the old object, which the informer no longer has
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

// isSameVersion reports whether nothing has changed: informers report every object again periodically, and after a reconnect.
func isSameVersion(a, b metav1.Object) bool {
	return a == b || a.GetUID() != "" && a.GetUID() == b.GetUID() &&
		a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion()
}

// place records where the pod is, and its dependencies.
func (s *podState) place(p *podEntry) {
	pod := p.object
	for _, d := range s.dependencies(pod) {
		if s.users[d] == nil {
			s.users[d] = map[*podEntry]struct{}{}
		}
		s.users[d][p] = struct{}{}
		s.contest(d)
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
		h.turn = s.nextTurn()
	case conversion.Provisionable(pod) || conversion.IsNominated(pod):
		s.waiting.add(p)
	}
}

// unplace is the reverse of place.
func (s *podState) unplace(p *podEntry) {
	pod := p.object
	for _, d := range s.dependencies(pod) {
		if delete(s.users[d], p); len(s.users[d]) == 0 {
			delete(s.users, d)
		}
		s.contest(d)
	}
	if set, ok := conversion.DaemonSetUID(pod); ok {
		if delete(s.daemonPods[set], p); len(s.daemonPods[set]) == 0 {
			delete(s.daemonPods, set)
		}
		if s.newest[set] == pod {
			s.leaderless[set] = true
		}
	}
	s.waiting.drop(p)
	if h := p.host; h != nil {
		i, last := slices.Index(h.pods, p), len(h.pods)-1
		h.pods[i], h.pods[last] = h.pods[last], nil
		h.pods, h.turn, p.host = h.pods[:last], s.nextTurn(), nil
		if last == 0 {
			delete(s.hosts, pod.Spec.NodeName)
		}
	}
}

func (s *podState) nextTurn() uint64 {
	s.turns++
	return s.turns
}

// findNewest looks for the DaemonSet's newest pod among all of them.
func (s *podState) findNewest(set types.UID) {
	delete(s.newest, set)
	for p := range s.daemonPods[set] {
		if conversion.IsNewer(p.object, s.newest[set]) {
			s.newest[set] = p.object
		}
	}
}

// touch marks the pods that depend on d: they are computed again.
func (s *podState) touch(d dependency) {
	for p := range s.users[d] {
		s.touchPod(p)
	}
}

func (s *podState) touchPod(p *podEntry) {
	if p.value = nil; p.host != nil {
		p.host.turn = s.nextTurn()
	}
}

// contest marks a volume claim that one pod at a time may use: that pod may be another now.
func (s *podState) contest(d dependency) {
	if d.kind == onClaim {
		s.contested[d.name] = true
	}
}

// settleUser finds the one pod that has the claim, if it is for one pod at a time.
func (s *podState) settleUser(id string) {
	d := dependency{onClaim, id}
	user := ""
	if claim := s.around.Volumes.Claims[id]; claim != nil && conversion.IsReadWriteOncePod(claim) {
		o := Objects{VolumeClaims: []*corev1.PersistentVolumeClaim{claim}}
		for p := range s.users[d] {
			o.Pods = append(o.Pods, p.object)
		}
		user = ownersOf(o)[id]
	}
	if user == s.around.Volumes.Single[id] {
		return
	}
	if s.around.Volumes.Single[id] = user; user == "" {
		delete(s.around.Volumes.Single, id)
	}
	s.touch(d)
}

// settle finds the user of each contested volume claim, and the newest pod of each DaemonSet that lost its newest. It reports
// whether the newest pod of any DaemonSet may have changed.
func (s *podState) settle() (isNewestChanged bool) {
	for id := range s.contested {
		s.settleUser(id)
	}
	clear(s.contested)
	isNewestChanged = s.isNewestChanged || len(s.leaderless) > 0
	for set := range s.leaderless {
		s.findNewest(set)
	}
	clear(s.leaderless)
	s.isNewestChanged = false
	return isNewestChanged
}

// queue is pods in the order of their names, out of which they come and go
// without a sort of all of them.
type queue struct {
	pods    []*podEntry // by name, when tidy has been called
	untidy  []*podEntry // added since
	anyGone bool        // some of pods are not queued any more
}

// queued is the place of a pod in a queue.
type queued struct{ in, listed bool }

func (q *queue) add(p *podEntry) {
	if p.queued.in = true; !p.queued.listed {
		p.queued.listed = true
		q.untidy = append(q.untidy, p)
	}
}

func (q *queue) drop(p *podEntry) {
	if p.queued.in {
		p.queued.in, q.anyGone = false, true
	}
}

// tidy returns the pods in order.
func (q *queue) tidy() []*podEntry {
	if q.anyGone {
		isGone := func(p *podEntry) bool {
			p.queued.listed = p.queued.in
			return !p.queued.in
		}
		q.pods, q.untidy = slices.DeleteFunc(q.pods, isGone), slices.DeleteFunc(q.untidy, isGone)
		q.anyGone = false
	}
	if len(q.untidy) > 0 {
		slices.SortFunc(q.untidy, byEntryID)
		q.pods, q.untidy = merged(q.pods, q.untidy, byEntryID), nil
	}
	return q.pods
}

func byEntryID(a, b *podEntry) int {
	return cmp.Or(cmp.Compare(a.object.Namespace, b.object.Namespace), cmp.Compare(a.object.Name, b.object.Name))
}

// merged returns two sorted lists as one.
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
