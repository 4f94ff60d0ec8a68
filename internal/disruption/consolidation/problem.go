package consolidation

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// problem is the input of a search with its indexes. It does not change during the search, except for its caches.
type problem struct {
	in         Input
	candidates []candidate    // sorted by name
	pods       []candidatePod // of all candidates, sorted by ID
	pools      map[string]int // index into Snapshot.Pools, by name
	byNode     map[string]int // index into candidates, by node name
	byPod      map[string]int // index into candidates, by pod ID

	price catalog.Price // of all candidates
	cost  float64       // of moving the pods of all candidates

	pendingPlan packing.Plan // of the pending pods, while all candidates stay

	kinds    *podKinds
	cheapest map[nodeKey]catalog.Price // cache of cheapestNode
}

type candidate struct {
	price   catalog.Price
	cost    float64 // of moving its pods
	at      int     // index into Snapshot.Nodes
	node    *cluster.Node
	drained cluster.Node // node as terminating, without the pods that can be moved
}

type candidatePod struct {
	pod       cluster.Pod // as a pending pod
	candidate int         // index into candidates
}

// newProblem returns the problem without pendingPlan, which newSearch sets.
func newProblem(in Input) *problem {
	p := &problem{in: in, pools: map[string]int{}, byNode: map[string]int{}, byPod: map[string]int{}, cheapest: map[nodeKey]catalog.Price{}}
	p.kinds = newPodKinds(in.Snapshot.Nodes)
	for i := range in.Snapshot.Pools {
		p.pools[in.Snapshot.Pools[i].Name] = i
	}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		c, ok := in.Nodes[n.Name]
		if !ok || n.Leaving || n.Claim == "" || !n.Initialized {
			continue
		}
		p.candidates = append(p.candidates, candidate{price: max(c.Price, 0), cost: max(c.Cost, 0), at: i, node: n, drained: withoutPods(n)})
	}
	slices.SortFunc(p.candidates, func(a, b candidate) int { return cmp.Compare(a.node.Name, b.node.Name) })
	for i := range p.candidates {
		c := &p.candidates[i]
		p.byNode[c.node.Name] = i
		p.price += c.price
		p.cost += c.cost
		for _, pod := range c.node.Pods {
			pod.Node = c.node.Name
			p.pods = append(p.pods, candidatePod{pod, i})
			p.byPod[pod.ID()] = i
		}
	}
	slices.SortFunc(p.pods, func(a, b candidatePod) int { return cluster.ComparePods(a.pod, b.pod) })
	return p
}

func withoutPods(n *cluster.Node) cluster.Node {
	out := *n
	out.Leaving, out.Pods = true, nil
	out.Residents = slices.Clone(n.Residents)
	for i := range n.Pods {
		p := &n.Pods[i]
		out.Requested = out.Requested.Sub(p.Requests)
		at := slices.IndexFunc(out.Residents, func(r cluster.Resident) bool { return r.Count > 0 && isOfKind(r.PodKind, p) })
		if at >= 0 {
			out.Residents[at].Count--
		}
	}
	out.Residents = slices.DeleteFunc(out.Residents, func(r cluster.Resident) bool { return r.Count <= 0 })
	return out
}

// isOfKind reports whether the pod is of the kind. It does not compare the anti-affinity terms, only their number.
func isOfKind(k *cluster.PodKind, p *cluster.Pod) bool {
	if k.Terminating || k.Namespace != p.Namespace || !maps.Equal(k.Labels, p.Labels) {
		return false
	}
	required := 0
	for i := range p.AntiAffinity {
		if p.AntiAffinity[i].Weight == 0 {
			required++
		}
	}
	return required == len(k.RequiredAntiAffinity)
}

// removeFromPool subtracts the candidate from the usage of its pool in the snapshot.
func (p *problem) removeFromPool(s *cluster.Snapshot, c *candidate) {
	if at, ok := p.pools[c.node.Pool]; ok {
		s.Pools[at] = s.Pools[at].WithoutNode(c.node.Capacity)
	}
}

// withinLimits returns the candidates of the order that may be removed together: the first candidates of each pool, up
// to its MaxRemovals.
func (p *problem) withinLimits(order []int) []int {
	taken := map[string]int{}
	return slices.DeleteFunc(slices.Clone(order), func(c int) bool {
		pool := p.candidates[c].node.Pool
		limit, isLimited := p.in.MaxRemovals[pool]
		taken[pool]++
		return isLimited && taken[pool] > limit
	})
}

// prefix returns the set of the first n candidates of the order: one entry per candidate, true if it is in the set.
func (p *problem) prefix(order []int, n int) []bool {
	gone := make([]bool, len(p.candidates))
	for _, c := range order[:n] {
		gone[c] = true
	}
	return gone
}

// byWaste returns the candidates sorted by waste relative to the cost of moving, highest first, and the number of
// candidates with any waste. fresh is the plan for the removal of all candidates. The waste of a candidate is its price
// minus its pods' share of the price of the nodes that fresh launches.
func (p *problem) byWaste(fresh packing.Plan) (order []int, wasteful int) {
	waste := make([]float64, len(p.candidates))
	for i := range p.candidates {
		waste[i] = p.candidates[i].price.Dollars()
	}
	pods := map[string]*candidatePod{} // of candidates, by ID; without pending pods
	for i := range p.pods {
		pods[p.pods[i].pod.ID()] = &p.pods[i]
	}
	for i := range fresh.PlannedNodes {
		m := &fresh.PlannedNodes[i]
		total := 0.0
		parts := make([]float64, len(m.Pods))
		for k, id := range m.Pods {
			if moved := pods[id]; moved != nil {
				parts[k] = requestShare(&moved.pod, m)
			}
			total += parts[k]
		}
		for k, id := range m.Pods {
			if moved := pods[id]; moved != nil && total > 0 {
				waste[moved.candidate] -= m.Price().Dollars() * parts[k] / total
			}
		}
	}
	order = make([]int, len(p.candidates))
	for i := range order {
		order[i] = i
	}
	value := func(c int) float64 { return waste[c] / (p.candidates[c].cost + 1) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(value(b), value(a)) })
	for wasteful < len(order) && waste[order[wasteful]] > 0 {
		wasteful++
	}
	return order, wasteful
}

// requestShare returns the pod's share of the planned node's requests: the mean over all resources except the number of
// pods, which is rarely the limit.
func requestShare(p *cluster.Pod, m *packing.PlannedNode) float64 {
	sum, n := 0.0, 0
	for _, name := range m.Requests.Names() {
		if total := m.Requests.Of(name); total > 0 && name != resources.Pods {
			sum += float64(p.Requests.Of(name)) / float64(total)
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// planLimit returns the maximum number of plans of a strategy, from minPlans to maxPlans. The more candidates there
// are, the fewer plans: between these limits, the number of plans times the number of candidates is at most maxNodes.
func (p *problem) planLimit(maxNodes, minPlans, maxPlans int) int {
	return min(max(maxNodes/len(p.candidates), minPlans), maxPlans)
}

// isSettled reports whether no pods are in transit: no pending pod has a place in the plan, and no terminating node has
// pods. The pods of stale nodes are ignored.
func (p *problem) isSettled() bool {
	return len(p.pendingPlan.Placements)+len(p.pendingPlan.PlannedNodes) == 0 &&
		!slices.ContainsFunc(p.in.Snapshot.Nodes, func(n cluster.Node) bool {
			return n.Leaving && len(n.Pods) > 0 && !p.in.Stale[n.Name]
		})
}

// existingNodesAwaitPods reports whether more than a quarter of the pods of terminating nodes will go to existing
// nodes. Moves must not use the room for these pods: the last of them would then need a new node that no plan has.
// Stale nodes are ignored.
func (p *problem) existingNodesAwaitPods() bool {
	leaving, takesPods := map[string]bool{}, map[string]bool{}
	for i := range p.in.Snapshot.Nodes {
		n := &p.in.Snapshot.Nodes[i]
		takesPods[n.Name] = n.Initialized && !n.Leaving
		if n.Leaving && !p.in.Stale[n.Name] {
			for k := range n.Pods {
				leaving[n.Pods[k].ID()] = true
			}
		}
	}
	toExisting := 0
	for _, placed := range p.pendingPlan.Placements {
		if leaving[placed.Pod] && takesPods[placed.Node] {
			toExisting++
		}
	}
	return toExisting*awaitedDivisor > len(leaving)
}

func (p *problem) podCount(candidates []int) int {
	n := 0
	for _, c := range candidates {
		n += len(p.candidates[c].node.Pods)
	}
	return n
}

func (p *problem) nodeNames(candidates []int) []string {
	out := make([]string, len(candidates))
	for i, c := range candidates {
		out[i] = p.candidates[c].node.Name
	}
	return out
}

// incomingOf returns the pods that a move evicts and the nodes that it launches. name returns the name of the planned
// node with index k.
func (p *problem) incomingOf(m *Move, name func(k int) string) incoming {
	planned := make(map[string]string, m.Pods)
	for _, placed := range m.Placements {
		planned[placed.Pod] = placed.Node
	}
	out := incoming{pods: make([]incomingPod, 0, m.Pods)}
	at := make(map[string]int, m.Pods)
	for _, node := range m.Nodes {
		n := p.candidates[p.byNode[node]].node
		for i := range n.Pods {
			at[n.Pods[i].ID()] = len(out.pods)
			out.pods = append(out.pods, incomingPod{pod: &n.Pods[i], from: node, planned: planned[n.Pods[i].ID()]})
		}
	}
	for k := range m.PlannedNodes {
		plannedNode := m.PlannedNodes[k]
		plannedNode.Name = name(k)
		var requests resources.Amounts // of the move's pods on the planned node
		for _, id := range plannedNode.Pods {
			if i, ok := at[id]; ok {
				out.pods[i].planned = plannedNode.Name
				requests = requests.Add(out.pods[i].pod.Requests)
			}
		}
		if simulated, ok := simNodeOf(&plannedNode, p.in.Market, requests); ok {
			out.nodes = append(out.nodes, simulated)
		}
	}
	return out
}

// reservePending reduces the free room of the simulated nodes by the room that the pending pods will use.
func (p *problem) reservePending(sim *simulation) {
	pending := make(map[string]*cluster.Pod, len(p.in.Snapshot.Pods))
	for i := range p.in.Snapshot.Pods {
		pending[p.in.Snapshot.Pods[i].ID()] = &p.in.Snapshot.Pods[i]
	}
	for _, placed := range p.pendingPlan.Placements {
		if at, ok := sim.byName[placed.Node]; ok && pending[placed.Pod] != nil {
			sim.setFree(at, sim.nodes[at].free.Sub(pending[placed.Pod].Requests))
		}
	}
}

// schedule adds the move's planned nodes and pods to the simulation. It reports whether every pod was scheduled. If a
// pod was not, schedule leaves the simulation unchanged. With the order oneAtATime, schedule sets the move's
// EvictionOrder, unless the move already has one.
func (p *problem) schedule(sim *simulation, m *Move) bool {
	before, added := len(sim.nodes), p.incomingOf(m, func(k int) string { return m.PlannedNodes[k].Name })
	for _, plannedNode := range added.nodes {
		sim.add(plannedNode.name, plannedNode)
	}
	if len(m.EvictionOrder) > 0 {
		added.sort(m.EvictionOrder)
		if sim.bindAll(added.pods, nil) == nil {
			return true
		}
	} else if sim.schedule(added.pods) == nil {
		if sim.order == oneAtATime {
			m.EvictionOrder = added.ids()
		}
		return true
	}
	sim.truncate(before)
	return false
}
