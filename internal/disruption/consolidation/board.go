package consolidation

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// board is the nodes as kube-scheduler finds them when pods of others come: it knows nothing of plans, and puts each pod, one after
// the other, on the node with most room (NodeResourcesFit's LeastAllocated and BalancedAllocation, its defaults). A plan that
// fills nodes to the brim may be right, and yet some of its pods would be left over.
//
// Pods that have rules about others, ports or volumes are put where the plan has them; there are few places for them.
type simulation struct {
	nodes    []simNode
	free     []freeRoom     // of the seats
	byName   map[string]int // nodes, by their names; machines by those of the plan
	accepted map[nodeRequirements][]int

	order evictionOrder
}

// seat is a node, or a machine that is to be one.
type simNode struct {
	name        string // as in byName
	planned     bool   // a machine that is to be bought
	labels      requirements.Labels
	taints      []requirements.Taint
	avoids      []cluster.Term
	allocatable resources.Amounts
	free        resources.Amounts
	newPods     int // that have come
	cordoned    bool
}

// room is what is free of a seat, of what nearly all pods ask for; less than nothing where it is shut. It is by itself because whoever looks
// for a place looks at that of all seats, and at hardly anything else.
type freeRoom struct{ cpu, memory int64 }

// demand is what a pod asks of nodes, told apart by where it is written: pods that are alike share it.
type nodeRequirements struct {
	required  *requirements.Requirements
	tolerates *requirements.Toleration
}

// newBoard has the nodes that are fit for pods, but for those that are out.
func newSimulation(nodes []cluster.Node, as evictionOrder, out func(i int) bool) *simulation {
	b := &simulation{byName: map[string]int{}, accepted: map[nodeRequirements][]int{}, order: as}
	for i := range nodes {
		n := &nodes[i]
		if n.Leaving || !n.Initialized || n.Cordoned() || out(i) {
			continue
		}
		s := simNode{labels: n.Labels, taints: n.Taints, allocatable: n.Allocatable, free: n.Allocatable.Sub(n.Requested)}
		for _, r := range n.Residents {
			s.avoids = append(s.avoids, r.Avoids...)
		}
		b.add(n.Name, s)
	}
	return b
}

func (b *simulation) add(name string, s simNode) {
	s.name, b.byName[name] = name, len(b.nodes)
	b.nodes, b.free = append(b.nodes, s), append(b.free, freeRoom{s.free.CPU, s.free.Memory})
	clear(b.accepted)
}

// cut takes all seats away but the first n.
func (b *simulation) truncate(n int) {
	for i := range b.nodes[n:] {
		delete(b.byName, b.nodes[n+i].name)
	}
	b.nodes, b.free = b.nodes[:n], b.free[:n]
	clear(b.accepted)
}

// set notes what is free of a seat now.
func (b *simulation) setFree(at int, free resources.Amounts) {
	s := &b.nodes[at]
	s.free, b.free[at] = free, freeRoom{free.CPU, free.Memory}
	if s.cordoned {
		b.free[at] = freeRoom{-1, -1}
	}
}

// seatOf is a machine of a plan, as what it is at its cheapest, with room for the pods that it is bought for. It reports whether that is
// still sold.
func simNodeOf(m *packing.Machine, market catalog.Market, pods resources.Amounts) (simNode, bool) {
	first := m.Offerings[0]
	for _, t := range market.Types(m.NodeClass, m.Pool) {
		if t.Name != first.InstanceType {
			continue
		}
		daemons := m.Requests.Sub(pods).Floor()
		return simNode{name: m.Name, planned: true, labels: labelsOf(&t, m.Labels, first.Zone, first.CapacityType), taints: m.Taints, allocatable: t.Allocatable, free: t.Allocatable.Sub(daemons)}, true
	}
	return simNode{}, false
}

// labelsOf are those of a machine of the type, with those of its pool.
func labelsOf(t *catalog.Type, pool requirements.Labels, zone, capacityType string) requirements.Labels {
	out := make(requirements.Labels, len(t.Labels)+len(pool)+2)
	maps.Copy(out, t.Labels)
	maps.Copy(out, pool)
	out[catalog.LabelZone], out[catalog.LabelCapacityType] = zone, capacityType
	return out
}

// isUsed reports whether pods have come to the node.
func (b *simulation) hasNewPods(name string) bool {
	at, ok := b.byName[name]
	return ok && b.nodes[at].newPods > 0
}

// shut keeps pods off the node, or lets them come again.
func (b *simulation) cordon(name string, is bool) {
	if at, ok := b.byName[name]; ok {
		b.nodes[at].cordoned = is
		b.setFree(at, b.nodes[at].free)
	}
}

// save returns the board as it is, to go on with if what is tried next comes to nothing.
func (b *simulation) clone() *simulation {
	return &simulation{nodes: slices.Clone(b.nodes), free: slices.Clone(b.free), byName: maps.Clone(b.byName), accepted: maps.Clone(b.accepted), order: b.order}
}

// take puts the pods on the board, and returns the first that finds no place, and then leaves the board as it was. They come
// as the board says.
func (b *simulation) schedule(arrivals []incomingPod) *cluster.Pod {
	return b.scheduleIf(arrivals, func(*simNode) bool { return true })
}

// hasRoom reports whether each of the pods, none of them tied, would find a place if it came alone: where one would not, all of them
// need not be tried.
func (b *simulation) fitsEach(pods []cluster.Pod) bool {
	for i := range pods {
		p := &pods[i]
		if !slices.ContainsFunc(b.accepting(p), func(at int) bool {
			return b.mayFit(at, p) && p.Requests.Fits(b.nodes[at].free) && !b.nodes[at].repels(p)
		}) {
			return false
		}
	}
	return true
}

// mayFit reports whether the seat is open, and has room for what nearly all pods ask for.
func (b *simulation) mayFit(at int, p *cluster.Pod) bool {
	r := &b.free[at]
	return p.Requests.CPU <= r.cpu && p.Requests.Memory <= r.memory
}

// isTied reports whether a pod's place depends on more than room, labels and taints.
func isConstrained(p *cluster.Pod) bool {
	binds := func(t cluster.Term) bool { return t.Weight == 0 }
	return len(p.HostPorts) > 0 || len(p.Volumes) > 0 || slices.ContainsFunc(p.Affinity, binds) || slices.ContainsFunc(p.AntiAffinity, binds) ||
		slices.ContainsFunc(p.Spread, func(s cluster.Spread) bool { return !s.Soft })
}

// place returns the seat that the pod gets, -1 for none.
func (b *simulation) nodeFor(a *incomingPod) int {
	p := a.pod
	if isConstrained(p) {
		if at, ok := b.byName[a.planned]; ok && !b.nodes[at].cordoned && p.Requests.Fits(b.nodes[at].free) {
			return at
		}
		return -1
	}
	best, most := -1, -1.0
	for _, at := range b.accepting(p) {
		if !b.mayFit(at, p) {
			continue
		}
		s := &b.nodes[at]
		if score := s.score(&p.Requests); score > most+1e-9 && p.Requests.Fits(s.free) && !s.repels(p) {
			best, most = at, score
		}
	}
	return best
}

// score is at most 1, the more the more room there would be of what there is least of. That is what NodeResourcesFit and
// NodeResourcesBalancedAllocation add up to, but for a constant.
func (s *simNode) score(ask *resources.Amounts) float64 {
	cpu := float64(s.free.CPU-ask.CPU) / float64(max(s.allocatable.CPU, 1))
	memory := float64(s.free.Memory-ask.Memory) / float64(max(s.allocatable.Memory, 1))
	return min(cpu, memory)
}

// accepting returns the seats that the pod may have if there is room, and nobody who keeps it off.
func (b *simulation) accepting(p *cluster.Pod) []int {
	key := nodeRequirements{}
	if len(p.Required) > 0 {
		key.required = &p.Required[0]
	}
	if len(p.Tolerations) > 0 {
		key.tolerates = &p.Tolerations[0]
	}
	out, known := b.accepted[key]
	if known {
		return out
	}
	for i := range b.nodes {
		if b.nodes[i].accepts(p) {
			out = append(out, i)
		}
	}
	b.accepted[key] = out
	return out
}

// keepsOff reports whether a pod on the node will not have this one near.
func (s *simNode) repels(p *cluster.Pod) bool {
	return slices.ContainsFunc(s.avoids, func(t cluster.Term) bool { return t.Matches(p.Namespace, p.Labels) })
}

// accepts reports whether the node's taints and labels are right for the pod.
func (s *simNode) accepts(p *cluster.Pod) bool {
	if _, bad := requirements.Untolerated(s.taints, p.Tolerations); bad {
		return false
	}
	return len(p.Required) == 0 || slices.ContainsFunc(p.Required, func(r requirements.Requirements) bool { return r.Accepts(s.labels) })
}
