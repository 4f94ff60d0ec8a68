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

// simulation models kube-scheduler with its default scoring: it schedules one pod after the other, each on the node
// with most free room (LeastAllocated of NodeResourcesFit, and NodeResourcesBalancedAllocation). kube-scheduler does
// not know the plan. So a plan that fills nodes completely can be correct and still leave a pod unschedulable.
//
// Constrained pods (isConstrained) go to the node of their plan, because few other nodes are possible for them.
type simulation struct {
	nodes    []simNode
	free     []freeRoom                 // by index into nodes
	byName   map[string]int             // index into nodes; planned nodes have the names of their plan
	accepted map[nodeRequirements][]int // cache of acceptingNodes

	order arrivalOrder
}

type simNode struct {
	name        string // key in byName
	isPlanned   bool   // not launched yet
	labels      requirements.Labels
	taints      []requirements.Taint
	avoids      []cluster.Term // required anti-affinity of pods on the node
	allocatable resources.Amounts
	free        resources.Amounts
	newPods     int // number of pods scheduled in the simulation
	cordoned    bool
}

// freeRoom is the free CPU and memory of a node, negative if the node is cordoned. It is separate from simNode because
// the search for a node reads freeRoom for all nodes, and hardly any other field.
type freeRoom struct{ cpu, memory int64 }

// nodeRequirements identifies a pod's requirements by their addresses, because equal pods share one copy of them.
type nodeRequirements struct {
	required  *requirements.Requirements
	tolerates *requirements.Toleration
}

// newSimulation returns a simulation with the nodes that are ready for pods. It leaves out the nodes for whose index
// skip returns true.
func newSimulation(nodes []cluster.Node, order arrivalOrder, skip func(i int) bool) *simulation {
	sim := &simulation{byName: map[string]int{}, accepted: map[nodeRequirements][]int{}, order: order}
	for i := range nodes {
		n := &nodes[i]
		if n.Leaving || !n.Initialized || n.Cordoned() || skip(i) {
			continue
		}
		s := simNode{labels: n.Labels, taints: n.Taints, allocatable: n.Allocatable, free: n.Allocatable.Sub(n.Requested)}
		for _, r := range n.Residents {
			s.avoids = append(s.avoids, r.RequiredAntiAffinity...)
		}
		sim.add(n.Name, s)
	}
	return sim
}

func (sim *simulation) add(name string, s simNode) {
	s.name, sim.byName[name] = name, len(sim.nodes)
	sim.nodes, sim.free = append(sim.nodes, s), append(sim.free, freeRoom{s.free.CPU, s.free.Memory})
	clear(sim.accepted)
}

// truncate removes all nodes but the first n.
func (sim *simulation) truncate(n int) {
	for i := range sim.nodes[n:] {
		delete(sim.byName, sim.nodes[n+i].name)
	}
	sim.nodes, sim.free = sim.nodes[:n], sim.free[:n]
	clear(sim.accepted)
}

func (sim *simulation) setFree(at int, free resources.Amounts) {
	s := &sim.nodes[at]
	s.free, sim.free[at] = free, freeRoom{free.CPU, free.Memory}
	if s.cordoned {
		sim.free[at] = freeRoom{-1, -1}
	}
}

// simNodeOf returns the planned node at its cheapest offering, with free room for the move's pods. podRequests are the
// requests of these pods; the planned node's other requests are those of its DaemonSet pods. simNodeOf returns false if
// the market has no such instance type.
func simNodeOf(m *packing.PlannedNode, market catalog.Market, podRequests resources.Amounts) (simNode, bool) {
	first := m.Offerings[0]
	for _, t := range market.Types(m.NodeClass, m.Pool) {
		if t.Name != first.InstanceType {
			continue
		}
		daemonPods := m.Requests.Sub(podRequests).RaiseNegatives()
		return simNode{
			name:        m.Name,
			isPlanned:   true,
			labels:      labelsOf(&t, m.Labels, first.Zone, first.CapacityType),
			taints:      m.Taints,
			allocatable: t.Allocatable,
			free:        t.Allocatable.Sub(daemonPods),
		}, true
	}
	return simNode{}, false
}

// labelsOf returns the labels of a node of the type. pool has the labels that come from the NodePool.
func labelsOf(t *catalog.Type, pool requirements.Labels, zone, capacityType string) requirements.Labels {
	out := make(requirements.Labels, len(t.Labels)+len(pool)+2)
	maps.Copy(out, t.Labels)
	maps.Copy(out, pool)
	out[catalog.LabelZone], out[catalog.LabelCapacityType] = zone, capacityType
	return out
}

func (sim *simulation) hasNewPods(name string) bool {
	at, ok := sim.byName[name]
	return ok && sim.nodes[at].newPods > 0
}

// cordon excludes the node from scheduling, or includes it again if cordoned is false.
func (sim *simulation) cordon(name string, cordoned bool) {
	if at, ok := sim.byName[name]; ok {
		sim.nodes[at].cordoned = cordoned
		sim.setFree(at, sim.nodes[at].free)
	}
}

func (sim *simulation) clone() *simulation {
	return &simulation{
		nodes:    slices.Clone(sim.nodes),
		free:     slices.Clone(sim.free),
		byName:   maps.Clone(sim.byName),
		accepted: maps.Clone(sim.accepted),
		order:    sim.order,
	}
}

// eachFitsAlone reports whether each of the pods would find a node if it were the only pod to schedule. If not,
// scheduling all pods cannot succeed either. The pods must not be constrained.
func (sim *simulation) eachFitsAlone(pods []cluster.Pod) bool {
	for i := range pods {
		p := &pods[i]
		if !slices.ContainsFunc(sim.acceptingNodes(p), func(at int) bool {
			return sim.mayFit(at, p) && p.Requests.Fits(sim.nodes[at].free) && !sim.nodes[at].repels(p)
		}) {
			return false
		}
	}
	return true
}

// mayFit reports whether the node has the CPU and memory for the pod, and is not cordoned.
func (sim *simulation) mayFit(at int, p *cluster.Pod) bool {
	r := &sim.free[at]
	return p.Requests.CPU <= r.cpu && p.Requests.Memory <= r.memory
}

// isConstrained reports whether the pod has requirements on its node besides room, labels and taints: host ports,
// volumes, or required affinity, anti-affinity or spread.
func isConstrained(p *cluster.Pod) bool {
	isRequired := func(t cluster.Term) bool { return t.Weight == 0 }
	return len(p.HostPorts) > 0 || len(p.Volumes) > 0 || slices.ContainsFunc(p.Affinity, isRequired) ||
		slices.ContainsFunc(p.AntiAffinity, isRequired) ||
		slices.ContainsFunc(p.Spread, func(s cluster.Spread) bool { return !s.Soft })
}

// nodeFor returns the index of the node on which kube-scheduler puts the pod; -1 for none.
func (sim *simulation) nodeFor(a *incomingPod) int {
	p := a.pod
	if isConstrained(p) {
		if at, ok := sim.byName[a.planned]; ok && !sim.nodes[at].cordoned && p.Requests.Fits(sim.nodes[at].free) {
			return at
		}
		return -1
	}
	best, highest := -1, -1.0
	for _, at := range sim.acceptingNodes(p) {
		if !sim.mayFit(at, p) {
			continue
		}
		s := &sim.nodes[at]
		const rounding = 1e-9 // of nodes with equal scores, the first is chosen
		if score := s.score(&p.Requests); score > highest+rounding && p.Requests.Fits(s.free) && !s.repels(p) {
			best, highest = at, score
		}
	}
	return best
}

// score returns the smaller of the free shares of CPU and of memory after the pod is added. The scores of
// NodeResourcesFit (mean) and NodeResourcesBalancedAllocation (1 − half of the difference) add up to 1 more.
func (s *simNode) score(ask *resources.Amounts) float64 {
	cpu := float64(s.free.CPU-ask.CPU) / float64(max(s.allocatable.CPU, 1))
	memory := float64(s.free.Memory-ask.Memory) / float64(max(s.allocatable.Memory, 1))
	return min(cpu, memory)
}

// acceptingNodes returns the indices of the nodes whose labels and taints fit the pod.
func (sim *simulation) acceptingNodes(p *cluster.Pod) []int {
	key := nodeRequirements{}
	if len(p.Required) > 0 {
		key.required = &p.Required[0]
	}
	if len(p.Tolerations) > 0 {
		key.tolerates = &p.Tolerations[0]
	}
	out, known := sim.accepted[key]
	if known {
		return out
	}
	for i := range sim.nodes {
		if sim.nodes[i].accepts(p) {
			out = append(out, i)
		}
	}
	sim.accepted[key] = out
	return out
}

// repels reports whether a pod that was on the node from the start has required anti-affinity with p.
func (s *simNode) repels(p *cluster.Pod) bool {
	return slices.ContainsFunc(s.avoids, func(t cluster.Term) bool { return t.Matches(p.Namespace, p.Labels) })
}

func (s *simNode) accepts(p *cluster.Pod) bool {
	if _, bad := requirements.Untolerated(s.taints, p.Tolerations); bad {
		return false
	}
	return len(p.Required) == 0 || slices.ContainsFunc(p.Required, func(r requirements.Requirements) bool { return r.Accepts(s.labels) })
}
