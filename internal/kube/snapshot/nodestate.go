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

// nodeState is the nodes of a state: NodeClaims, Nodes, and what they are together with their pods.
type nodeState struct {
	pods   *podState
	nodes  map[string]*corev1.Node
	claims map[string]*karpv1.NodeClaim
	market catalog.Market // of the last snapshot

	slots    []*slot     // in the order of the snapshot
	views    []*nodeView // of slots
	isPaired bool        // slots have all current claims and Nodes
	late     []*karpv1.NodeClaim
	byClaim  map[string]*slot // slots by claim name
	byNode   map[string]*slot // slots by Node name

	listed []cluster.Node // the nodes of the last snapshot

	kinds   podKinds
	rules   guards
	daemons []cluster.Daemon

	// These count the changes of market, rules and daemons. A slot stores the counts that it was computed with.
	marketTurn, rulesTurn, daemonsTurn uint64
}

func newNodeState(pods *podState) *nodeState {
	return &nodeState{pods: pods, nodes: map[string]*corev1.Node{}, claims: map[string]*karpv1.NodeClaim{}}
}

// slot is a node of the snapshot: with what it was made from, so that it is made
// again when, and only when, any of that is another.
type slot struct {
	pair // as they are now

	// bare is the node before any pods are on it.
	bare     nodeView
	bareOf   pair
	bareWith *storagev1.CSINode
	bareTurn uint64 // of the market; 0 before it was made

	// full is the node with its pods.
	full      nodeView
	isFull    bool   // it is that of bare
	fullTurn  uint64 // of the host
	rulesTurn uint64
	isTimed   bool     // some of its pods are protected for a time
	held      []mover  // pods that are not on it yet, and that kube-scheduler holds room for
	coming    []mover  // pods that it was launched for and that are not bound to it yet
	unseated  []mover  // those of them whose room is gone
	leaving   []mover  // its pods that need another place
	shared    []string // the volume claims of its pods that other pods may use too

	// value is full with the DaemonSet pods that it has yet to get.
	value       cluster.Node
	daemonsTurn uint64
	isDone      bool // value is that of full
	isListed    bool // value is in nodeState.listed, at number
	number      int
}

// mover is a pod that needs a place.
type mover struct {
	object *corev1.Pod
	value  *cluster.Pod
}

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

// pair assigns each claim and Node to its slot. late are claims that no informer event has reported yet.
func (s *nodeState) pair(late []*karpv1.NodeClaim) {
	late = slices.DeleteFunc(slices.Clone(late), func(c *karpv1.NodeClaim) bool { return s.claims[c.Name] != nil })
	if s.isPaired && slices.Equal(late, s.late) {
		return // events have put what is new into its slot
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
	for _, x := range before {
		s.kinds.dropAll(x.full.residents)
	}
}

// setMarket sets the market. Nodes are computed from its instance types, not from prices.
func (s *nodeState) setMarket(market catalog.Market) {
	if s.marketTurn == 0 || !maps.EqualFunc(market, s.market, areSameTypes) {
		s.marketTurn++
	}
	s.market = market
}

func (s *nodeState) setBudgets(rules guards) {
	s.rules = rules
	s.rulesTurn++
}

// setDaemons sets the DaemonSets. Nodes are computed again only if a DaemonSet has changed.
func (s *nodeState) setDaemons(daemons []cluster.Daemon) {
	if !reflect.DeepEqual(daemons, s.daemons) {
		s.daemons = daemons
		s.daemonsTurn++
	}
}

func areSameTypes(a, b catalog.Catalog) bool {
	return areSame(a.Types, b.Types) && maps.EqualFunc(a.Pools, b.Pools, areSame)
}

func areSame(a, b []catalog.Type) bool {
	if len(a) != len(b) || len(a) == 0 || &a[0] == &b[0] {
		return len(a) == len(b)
	}
	return slices.EqualFunc(a, b, func(a, b catalog.Type) bool {
		return a.Name == b.Name && a.Volumes == b.Volumes && a.Capacity.Equal(b.Capacity) &&
			a.Allocatable.Equal(b.Allocatable) && maps.Equal(a.Labels, b.Labels)
	})
}

// lay makes the nodes as they are without pods, and puts them in order.
func (s *nodeState) lay(drivers map[string]*storagev1.CSINode) {
	for _, x := range s.slots {
		if x.bareTurn == s.marketTurn && x.bareOf == x.pair && x.bareWith == drivers[x.bare.value.Name] {
			continue
		}
		x.bare = x.pair.view(drivers, s.market)
		x.bareTurn, x.bareOf, x.bareWith = s.marketTurn, x.pair, drivers[x.bare.value.Name]
		x.isFull = false
	}
	byID := func(a, b *slot) int { return byNodeID(&a.bare.value, &b.bare.value) }
	if !slices.IsSortedFunc(s.slots, byID) {
		slices.SortFunc(s.slots, byID)
	}
	s.views = s.views[:0]
	for _, x := range s.slots {
		s.views = append(s.views, &x.bare)
	}
}

// fill puts onto the node the pods that are bound to it, and those that are
// held for or coming, if any of this is not as it was.
func (s *nodeState) fill(x *slot, b *builder, held, coming []mover) {
	var h host
	if x.node != nil && s.pods.hosts[x.node.Name] != nil {
		h = *s.pods.hosts[x.node.Name]
	}
	if x.isFull && x.fullTurn == h.turn && slices.Equal(x.held, held) && slices.Equal(x.coming, coming) &&
		!(x.bare.going && (x.isTimed || x.rulesTurn != s.rulesTurn)) {
		return
	}
	before := x.full.residents
	x.full, x.leaving, x.shared, x.isTimed, x.isDone = x.bare, nil, nil, false, false
	x.full.value.Pods = slices.Grow(x.full.value.Pods, h.carried()+len(held)+len(coming)) // as many as there will be, and no more
	for _, p := range h.pods {
		if !conversion.NeedsPlace(p.object) {
			x.full.keep(b, p.object)
			continue
		}
		if value := s.pods.valueOf(p); x.full.carry(b, p.object, value) {
			leaves := *value
			leaves.Node = x.full.value.Name
			x.leaving = append(x.leaving, mover{p.object, &leaves})
		}
		x.isTimed = x.isTimed || isTimed(p.object)
	}
	for _, m := range held {
		x.full.await(b, m.object, m.value)
	}
	x.unseated = x.full.welcome(b, coming)
	x.full.sort()
	for i := range x.full.value.Pods {
		x.shared = append(x.shared, x.full.value.Pods[i].Volumes...)
	}
	h.moveInto(x.full.value.Pods)
	s.kinds.dropAll(before)
	x.isFull, x.fullTurn, x.rulesTurn, x.held, x.coming = true, h.turn, s.rulesTurn, held, coming
}

// carried returns how many of the pods would need a place without the node.
func (h *host) carried() int {
	n := 0
	for _, p := range h.pods {
		if conversion.NeedsPlace(p.object) {
			n++
		}
	}
	return n
}

// moveInto lets the values of the host's pods be those in pods, so that each is
// held once.
func (h *host) moveInto(pods []cluster.Pod) {
	for _, p := range h.pods {
		if p.value == nil {
			continue
		}
		p.value = &pods[sort.Search(len(pods), func(i int) bool { return byPodID(&pods[i], p.value) >= 0 })]
	}
}

// isTimed reports whether the pod is protected until some time.
func isTimed(pod *corev1.Pod) bool {
	text, ok := pod.Annotations[karpv1.AnnotationDoNotDisrupt]
	return ok && text != "true"
}

// finish counts the DaemonSet pods that the node has yet to get.
func (s *nodeState) finish(x *slot) {
	if !x.isDone || x.daemonsTurn != s.daemonsTurn {
		x.value = x.full.total(s.daemons)
		x.isDone, x.isListed, x.daemonsTurn = true, false, s.daemonsTurn
	}
}

// list returns the nodes in order: the list of the snapshot before, if it is the same.
func (s *nodeState) list() []cluster.Node {
	isSame := s.listed != nil && len(s.listed) == len(s.slots)
	for i, x := range s.slots {
		s.finish(x)
		isSame = isSame && x.isListed && x.number == i
	}
	if isSame {
		return s.listed
	}
	s.listed = make([]cluster.Node, len(s.slots))
	for i, x := range s.slots {
		s.listed[i], x.isListed, x.number = x.value, true, i
	}
	return s.listed
}
