package snapshot

import (
	"maps"
	"reflect"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// nodeState has the NodeClaims and Nodes of a state, and the nodes of the snapshot that are computed from them.
type nodeState struct {
	pods   *podState
	nodes  map[string]*corev1.Node      // Nodes by name
	claims map[string]*karpv1.NodeClaim // NodeClaims by name
	market catalog.Market               // the market of the last snapshot

	slots    []*slot             // the slots in the order of the snapshot
	views    []*nodeView         // withoutPods of each slot, in the same order
	isPaired bool                // the slots have all current claims and Nodes
	late     []*karpv1.NodeClaim // claims in slots that no informer event had reported before the last snapshot
	byClaim  map[string]*slot    // slots by claim name
	byNode   map[string]*slot    // slots by Node name

	listed []cluster.Node // the nodes of the last snapshot

	kinds   podKinds         // the kinds of pods, each once
	budgets budgetIndex      // the PodDisruptionBudgets
	daemons []cluster.Daemon // the DaemonSets

	// The revisions count the changes of market, budgets and daemons. A slot stores the revisions that it was computed
	// with.
	marketRevision, budgetsRevision, daemonsRevision uint64
}

func newNodeState(pods *podState) *nodeState {
	return &nodeState{pods: pods, nodes: map[string]*corev1.Node{}, claims: map[string]*karpv1.NodeClaim{}}
}

// slot is a node of the snapshot with the inputs that it was computed from. It is computed again only when an input
// changes.
type slot struct {
	pair // the current claim and Node

	withoutPods     nodeView
	computedPair    pair               // the pair that withoutPods was computed from
	computedCSINode *storagev1.CSINode // the CSINode that withoutPods was computed from
	marketRevision  uint64             // nodeState.marketRevision of withoutPods; 0: never computed

	withPods          nodeView
	isWithPodsCurrent bool          // withPods was computed from the current withoutPods
	hostRevision      uint64        // host.revision of withPods
	budgetsRevision   uint64        // nodeState.budgetsRevision of withPods
	hasTimedPod       bool          // a pod of the node is protected for a limited time
	nominated         []unplacedPod // pods that are nominated for the node and not bound yet
	coming            []unplacedPod // pods that the node was launched for and that are not bound to it yet
	withoutRoom       []unplacedPod // the pods of coming that the node has no room for any more
	leaving           []unplacedPod // the pods of the node that need another node
	shared            []string      // the volume claims of the node's pods that other pods may also use

	// value is withPods plus the DaemonSet pods that the node does not run yet.
	value           cluster.Node
	daemonsRevision uint64 // nodeState.daemonsRevision of value
	isValueCurrent  bool   // value was computed from the current withPods
	isListed        bool   // value is in nodeState.listed
	listIndex       int    // the index of value in nodeState.listed
}

// unplacedPod is a pod that is not bound to a node, or must move to another node.
type unplacedPod struct {
	object *corev1.Pod
	value  *cluster.Pod
}

// putNode stores a Node. If its pairing with a claim may change, the next snapshot makes all pairs again.
func (s *nodeState) putNode(n *corev1.Node) {
	before := s.nodes[n.Name]
	s.nodes[n.Name] = n
	if before == nil || before.Spec.ProviderID != n.Spec.ProviderID {
		s.isPaired = false
	} else if x := s.byNode[n.Name]; x != nil {
		x.node = n
	}
}

func (s *nodeState) dropNode(n *corev1.Node) {
	delete(s.nodes, n.Name)
	s.isPaired = false
}

// putClaim stores a claim. If its pairing with a Node may change, the next snapshot makes all pairs again.
func (s *nodeState) putClaim(c *karpv1.NodeClaim) {
	before := s.claims[c.Name]
	s.claims[c.Name] = c
	if before == nil || before.Status.ProviderID != c.Status.ProviderID ||
		before.Status.NodeName != c.Status.NodeName || byAge(before, c) != 0 {
		s.isPaired = false
	} else if x := s.byClaim[c.Name]; x != nil {
		x.claim = c
	}
}

func (s *nodeState) dropClaim(c *karpv1.NodeClaim) {
	delete(s.claims, c.Name)
	s.isPaired = false
}

// assignSlots assigns each claim and Node to its slot. late are claims that no informer event has reported yet.
func (s *nodeState) assignSlots(late []*karpv1.NodeClaim) {
	late = slices.DeleteFunc(slices.Clone(late), func(c *karpv1.NodeClaim) bool { return s.claims[c.Name] != nil })
	if s.isPaired && slices.Equal(late, s.late) {
		return // events have updated the slots in place
	}
	s.isPaired, s.late = true, late
	s.byClaim, s.byNode = make(map[string]*slot, len(s.claims)), make(map[string]*slot, len(s.nodes))
	type names struct{ claim, node string }
	nameOf := func(p pair) (out names) {
		if p.claim != nil {
			out.claim = p.claim.Name
		}
		if p.node != nil {
			out.node = p.node.Name
		}
		return out
	}
	before := make(map[names]*slot, len(s.slots))
	for _, x := range s.slots {
		before[nameOf(x.pair)] = x
	}
	s.slots = s.slots[:0:0]
	for _, p := range pairsOf(slices.AppendSeq(late, maps.Values(s.claims)), slices.Collect(maps.Values(s.nodes))) {
		name := nameOf(p)
		x := before[name]
		if x == nil {
			x = &slot{}
		}
		delete(before, name)
		x.pair = p
		s.slots = append(s.slots, x)
		if p.claim != nil {
			s.byClaim[name.claim] = x
		}
		if p.node != nil {
			s.byNode[name.node] = x
		}
	}
	for _, x := range before { // the slots whose claim or Node is gone
		s.kinds.dropAll(x.withPods.residents)
	}
}

// setMarket sets the market. A change of prices alone does not change the revision: nodes are computed only from types.
func (s *nodeState) setMarket(market catalog.Market) {
	if s.marketRevision == 0 || !maps.EqualFunc(market, s.market, areSameTypes) {
		s.marketRevision++
	}
	s.market = market
}

func (s *nodeState) setBudgets(budgets budgetIndex) {
	s.budgets = budgets
	s.budgetsRevision++
}

// setDaemons sets the DaemonSets. The revision grows only if a DaemonSet has changed.
func (s *nodeState) setDaemons(daemons []cluster.Daemon) {
	if !reflect.DeepEqual(daemons, s.daemons) {
		s.daemons = daemons
		s.daemonsRevision++
	}
}

// areSameTypes reports whether the same nodes result from the types of a and of b. It ignores offerings and prices.
func areSameTypes(a, b catalog.Catalog) bool {
	return areSameLists(a.Types, b.Types) && maps.EqualFunc(a.Pools, b.Pools, areSameLists)
}

func areSameLists(a, b []catalog.Type) bool {
	if len(a) != len(b) || len(a) == 0 || &a[0] == &b[0] {
		return len(a) == len(b)
	}
	return slices.EqualFunc(a, b, func(a, b catalog.Type) bool {
		return a.Name == b.Name && a.Volumes == b.Volumes && a.Capacity.Equal(b.Capacity) &&
			a.Allocatable.Equal(b.Allocatable) && maps.Equal(a.Labels, b.Labels)
	})
}

// computeWithoutPods computes withoutPods of each slot whose inputs have changed, and sorts the slots by name.
func (s *nodeState) computeWithoutPods(csiNodes map[string]*storagev1.CSINode) {
	for _, x := range s.slots {
		if x.marketRevision == s.marketRevision && x.computedPair == x.pair && x.computedCSINode == csiNodes[x.withoutPods.value.Name] {
			continue
		}
		x.withoutPods = x.pair.view(csiNodes, s.market)
		x.marketRevision, x.computedPair, x.computedCSINode = s.marketRevision, x.pair, csiNodes[x.withoutPods.value.Name]
		x.isWithPodsCurrent = false
	}
	byID := func(a, b *slot) int { return byNodeID(&a.withoutPods.value, &b.withoutPods.value) }
	if !slices.IsSortedFunc(s.slots, byID) {
		slices.SortFunc(s.slots, byID)
	}
	s.views = s.views[:0]
	for _, x := range s.slots {
		s.views = append(s.views, &x.withoutPods)
	}
}

// addPods computes withPods: withoutPods plus the pods that are bound to the node, nominated for it, or planned for it
// (coming). It does nothing if withPods is current and none of these pods has changed.
func (s *nodeState) addPods(x *slot, b *builder, nominated, coming []unplacedPod) {
	var h host // empty without bound pods
	if x.node != nil && s.pods.hosts[x.node.Name] != nil {
		h = *s.pods.hosts[x.node.Name]
	}
	// Which pods may be evicted from a terminating node also depends on the time and on PodDisruptionBudgets.
	mayEvictionsDiffer := x.withoutPods.isTerminating && (x.hasTimedPod || x.budgetsRevision != s.budgetsRevision)
	if x.isWithPodsCurrent && x.hostRevision == h.revision && slices.Equal(x.nominated, nominated) &&
		slices.Equal(x.coming, coming) && !mayEvictionsDiffer {
		return
	}
	before := x.withPods.residents
	x.withPods, x.leaving, x.shared, x.hasTimedPod, x.isValueCurrent = x.withoutPods, nil, nil, false, false
	x.withPods.value.Pods = slices.Grow(x.withPods.value.Pods, h.countMovable()+len(nominated)+len(coming))
	for _, p := range h.pods {
		if !conversion.NeedsPlace(p.object) {
			x.withPods.addUnmovable(b, p.object)
			continue
		}
		if value := s.pods.valueOf(p); x.withPods.addMovable(b, p.object, value) {
			evicted := *value
			evicted.Node = x.withPods.value.Name
			x.leaving = append(x.leaving, unplacedPod{p.object, &evicted})
		}
		x.hasTimedPod = x.hasTimedPod || isTimed(p.object)
	}
	for _, p := range nominated {
		x.withPods.addExpected(b, p.object, p.value)
	}
	x.withoutRoom = x.withPods.addPlanned(b, coming)
	x.withPods.sort()
	for i := range x.withPods.value.Pods {
		x.shared = append(x.shared, x.withPods.value.Pods[i].Volumes...)
	}
	h.shareValues(x.withPods.value.Pods)
	s.kinds.dropAll(before)
	x.isWithPodsCurrent, x.hostRevision, x.budgetsRevision = true, h.revision, s.budgetsRevision
	x.nominated, x.coming = nominated, coming
}

func (h *host) countMovable() int {
	n := 0
	for _, p := range h.pods {
		if conversion.NeedsPlace(p.object) {
			n++
		}
	}
	return n
}

// shareValues makes the value of each pod of the host point to the equal element of pods, so that each value is stored
// once. pods must be sorted.
func (h *host) shareValues(pods []cluster.Pod) {
	for _, p := range h.pods {
		if p.value == nil {
			continue
		}
		p.value = &pods[sort.Search(len(pods), func(i int) bool { return byPodID(&pods[i], p.value) >= 0 })]
	}
}

// isTimed reports whether the pod's protection from disruption may end with time: its annotation is not "true".
func isTimed(pod *corev1.Pod) bool {
	text, ok := pod.Annotations[karpv1.AnnotationDoNotDisrupt]
	return ok && text != "true"
}

// addDaemons computes value, unless it is current: withPods plus the DaemonSet pods that the node does not run yet.
func (s *nodeState) addDaemons(x *slot) {
	if !x.isValueCurrent || x.daemonsRevision != s.daemonsRevision {
		x.value = x.withPods.withDaemonPods(s.daemons)
		x.isValueCurrent, x.isListed, x.daemonsRevision = true, false, s.daemonsRevision
	}
}

// list returns the nodes in the order of the slots. It returns the previous slice if no node has changed.
func (s *nodeState) list() []cluster.Node {
	isSame := s.listed != nil && len(s.listed) == len(s.slots)
	for i, x := range s.slots {
		s.addDaemons(x)
		isSame = isSame && x.isListed && x.listIndex == i
	}
	if isSame {
		return s.listed
	}
	s.listed = make([]cluster.Node, len(s.slots))
	for i, x := range s.slots {
		s.listed[i], x.isListed, x.listIndex = x.value, true, i
	}
	return s.listed
}
