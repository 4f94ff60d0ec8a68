package consolidation

import (
	"maps"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// simulation models kube-scheduler with its default scoring: it schedules one pod after the other, each on the node
// with the highest score: most free room (LeastAllocated of NodeResourcesFit, and NodeResourcesBalancedAllocation), and
// few pods of the same kind (PodTopologySpread). kube-scheduler does
// not know the plan. So a plan that fills nodes completely can be correct and still leave a pod unschedulable.
//
// Pods with spread and anti-affinity go to the node with most free room that their rules allow (topologyRule), if the
// simulation knows their rules (followsRules). Other constrained pods (isConstrained) go to the node of their plan,
// because few other nodes are possible for them.
type simulation struct {
	nodes    []simNode
	free     []freeRoom                 // by index into nodes
	byName   map[string]int             // index into nodes; planned nodes have the names of their plan
	accepted map[nodeRequirements][]int // cache of acceptingNodes
	rules    map[ruleKey]*topologyRule  // cache of spreadRule and termRule
	matchers map[ruleKey]*ruleMatcher   // of all rules so far; shared with clones
	others   []simNode                  // nodes that take no pods; drained nodes have no residents
	kinds    *podKinds
	indexOf  []int                            // by index into kinds.nodes: index into nodes, or -1-i for others[i]
	counts   map[*cluster.PodKind]*kindCounts // cache of countsOf
	feasible []int                            // scratch space of nodeFor

	order arrivalOrder
}

type simNode struct {
	name        string // key in byName
	isPlanned   bool   // not launched yet
	labels      requirements.Labels
	zone        string
	taints      []requirements.Taint
	avoids      []cluster.Term // required anti-affinity of pods on the node
	residents   []cluster.Resident
	allocatable resources.Amounts
	free        resources.Amounts
	reserved    resources.Amounts // part of free: for pods of other moves that are still on their old nodes
	newPods     []*cluster.Pod    // pods scheduled in the simulation
	cordoned    bool
	isDrained   bool // see nodeRole
}

// freeRoom is the free CPU and memory of a node, negative if the node is cordoned. It is separate from simNode because
// the search for a node reads freeRoom for all nodes, and hardly any other field.
type freeRoom struct{ cpu, memory int64 }

// nodeRequirements identifies a pod's requirements by their addresses, because equal pods share one copy of them.
type nodeRequirements struct {
	required  *requirements.Requirements
	tolerates *requirements.Toleration
}

// nodeRole is what a node does in a simulation.
type nodeRole int

const (
	receives nodeRole = iota // the node takes pods
	full                     // the node takes no pods, and its pods stay
	drained                  // the node's pods move, and it exists until they have moved
)

// roleOf returns the role drained if the node is removed, else receives.
func roleOf(removed bool) nodeRole {
	if removed {
		return drained
	}
	return receives
}

// newSimulation returns a simulation. role returns the role of the node with the index i. Nodes that are not ready for
// pods receive none.
func newSimulation(kinds *podKinds, order arrivalOrder, role func(i int) nodeRole) *simulation {
	sim := &simulation{
		byName: map[string]int{}, accepted: map[nodeRequirements][]int{}, rules: map[ruleKey]*topologyRule{},
		matchers: map[ruleKey]*ruleMatcher{}, kinds: kinds, counts: map[*cluster.PodKind]*kindCounts{}, order: order,
	}
	sim.indexOf = make([]int, len(kinds.nodes))
	for i := range kinds.nodes {
		n := &kinds.nodes[i]
		if role := role(i); role != receives || n.Leaving || !n.Initialized || n.Cordoned() {
			other := simNode{name: n.Name, labels: n.Labels, isDrained: role == drained || n.Leaving}
			if !other.isDrained {
				other.residents = n.Residents
			}
			sim.others = append(sim.others, other)
			sim.indexOf[i] = -len(sim.others)
			continue
		}
		s := simNode{labels: n.Labels, taints: n.Taints, residents: n.Residents, allocatable: n.Allocatable, free: n.Allocatable.Sub(n.Requested)}
		for _, r := range n.Residents {
			s.avoids = append(s.avoids, r.RequiredAntiAffinity...)
		}
		for k := range n.Pods {
			if p := &n.Pods[k]; isExpectedFromOther(p, n) {
				s.free, s.reserved = s.free.Add(p.Requests), s.reserved.Add(p.Requests)
			}
		}
		sim.indexOf[i] = len(sim.nodes)
		sim.add(n.Name, s)
	}
	return sim
}

// isExpectedFromOther reports whether the pod is expected on the node n, because of a move, and still on another node.
func isExpectedFromOther(p *cluster.Pod, n *cluster.Node) bool {
	return p.Node != "" && p.Node != n.Name
}

func (sim *simulation) add(name string, s simNode) {
	s.name, s.zone, sim.byName[name] = name, s.labels[catalog.LabelZone], len(sim.nodes)
	sim.nodes, sim.free = append(sim.nodes, s), append(sim.free, freeRoom{s.free.CPU, s.free.Memory})
	clear(sim.accepted)
	for _, r := range sim.rules {
		r.add(&s)
	}
	for _, c := range sim.counts {
		c.onNode = append(c.onNode, 0)
	}
}

// truncate removes all nodes but the first n.
func (sim *simulation) truncate(n int) {
	for i := range sim.nodes[n:] {
		delete(sim.byName, sim.nodes[n+i].name)
	}
	sim.nodes, sim.free = sim.nodes[:n], sim.free[:n]
	clear(sim.accepted)
	clear(sim.rules)
	clear(sim.counts)
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
	return ok && len(sim.nodes[at].newPods) > 0
}

// cordon excludes the node from scheduling, or includes it again if cordoned is false.
func (sim *simulation) cordon(name string, cordoned bool) {
	at, ok := sim.byName[name]
	if !ok {
		sim.drainOther(name, cordoned)
		return
	}
	if sim.nodes[at].cordoned == cordoned {
		return
	}
	sim.nodes[at].cordoned = cordoned
	sim.setFree(at, sim.nodes[at].free)
	if cordoned {
		sim.countResidents(at, -1) // its pods are evicted
	} else {
		sim.countResidents(at, 1)
	}
}

// drainOther excludes the pods of a node that takes no pods from the counts of rules, because they are evicted, or
// includes them again.
func (sim *simulation) drainOther(name string, drained bool) {
	i := slices.IndexFunc(sim.others, func(n simNode) bool { return n.name == name })
	if i < 0 || sim.others[i].cordoned == drained {
		return
	}
	sim.others = slices.Clone(sim.others) // a clone of the simulation may use it
	sim.others[i].cordoned = drained
	clear(sim.rules)
	clear(sim.counts)
}

func (sim *simulation) clone() *simulation {
	return &simulation{
		nodes:    slices.Clone(sim.nodes),
		free:     slices.Clone(sim.free),
		byName:   maps.Clone(sim.byName),
		accepted: maps.Clone(sim.accepted),
		rules:    map[ruleKey]*topologyRule{},
		matchers: sim.matchers,
		others:   sim.others,
		kinds:    sim.kinds,
		indexOf:  sim.indexOf,
		counts:   map[*cluster.PodKind]*kindCounts{},
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
	constrained := isConstrained(p)
	if constrained && !followsRules(p) {
		if at, ok := sim.byName[a.planned]; ok && !sim.nodes[at].cordoned && p.Requests.Fits(sim.nodes[at].free) {
			return at
		}
		return -1
	}
	feasible := sim.feasible[:0]
	for _, at := range sim.acceptingNodes(p) {
		s := &sim.nodes[at]
		if sim.mayFit(at, p) && p.Requests.Fits(s.free) && !s.repels(p) && !(constrained && sim.violates(p, at)) {
			feasible = append(feasible, at)
		}
	}
	sim.feasible = feasible
	best := sim.highestScore(p, feasible)
	if best >= 0 {
		if s := &sim.nodes[best]; !s.reserved.Fits(s.free.Sub(p.Requests)) {
			return -1 // kube-scheduler does not know the other move: the pod would take the room of its pods
		}
	}
	return best
}

// highestScore returns the feasible node with kube-scheduler's highest score for the pod; -1 if there is none.
func (sim *simulation) highestScore(p *cluster.Pod, feasible []int) int {
	spread := sim.spreadScores(p, feasible)
	best, highest := -1, -1.0
	for i, at := range feasible {
		const rounding = 1e-9 // of nodes with equal scores, the first is chosen
		score := sim.nodes[at].score(&p.Requests)
		if spread != nil {
			score += float64(spreadWeight * spread[i])
		}
		if score > highest+rounding {
			best, highest = at, score
		}
	}
	return best
}

// score returns the sum of kube-scheduler's scores for resources, each from 0 to 100: LeastAllocated of
// NodeResourcesFit, and NodeResourcesBalancedAllocation, which is 75 if the pod does not change how different the used
// shares of CPU and memory are.
func (s *simNode) score(ask *resources.Amounts) float64 {
	share := func(free, allocatable int64) float64 { return float64(free) / float64(max(allocatable, 1)) }
	cpuBefore, memoryBefore := share(s.free.CPU, s.allocatable.CPU), share(s.free.Memory, s.allocatable.Memory)
	cpu, memory := share(s.free.CPU-ask.CPU, s.allocatable.CPU), share(s.free.Memory-ask.Memory, s.allocatable.Memory)
	return 100*(cpu+memory)/2 + 75 + 25*(math.Abs(cpuBefore-memoryBefore)-math.Abs(cpu-memory))
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

// repels reports whether a pod on the node has required anti-affinity with p.
func (s *simNode) repels(p *cluster.Pod) bool {
	return slices.ContainsFunc(s.avoids, func(t cluster.Term) bool { return t.Matches(p.Namespace, p.Labels) }) ||
		slices.ContainsFunc(s.newPods, func(other *cluster.Pod) bool {
			return slices.ContainsFunc(other.AntiAffinity, func(t cluster.Term) bool {
				return t.Weight == 0 && t.Key == labelHostname && t.Matches(p.Namespace, p.Labels)
			})
		})
}

func (s *simNode) accepts(p *cluster.Pod) bool {
	if _, bad := requirements.Untolerated(s.taints, p.Tolerations); bad {
		return false
	}
	return s.satisfies(p)
}
